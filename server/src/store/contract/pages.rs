//! Listings.

use tokkuri_core::id::{Attempt, TaskId};
use tokkuri_core::store::Filter;
use tokkuri_core::task::{Command, Draft, Status};

use super::Verdict;
use super::samples::{NODE, OTHER_NODE, Shared, draft, everything, holds, json, owner, question, short};
use super::trial::Trial;

pub(super) async fn pages_are_in_the_order_of_ids(trial: Trial) -> Verdict {
    let mut ids = Vec::new();
    for n in 0..23 {
        ids.push(trial.inserted(draft(n)).await?.id);
    }
    ids.sort_unstable();
    for limit in [1, 5, 22, 23, 24] {
        let mut seen = Vec::new();
        let mut after = None;
        loop {
            let (_, page, more) = trial.page(everything(), after, limit).await?;
            holds(page.len() <= limit as usize, || format!("a page of {} instead of {limit}", page.len()))?;
            seen.extend(page.iter().map(|task| task.id));
            let is_more = seen.len() < ids.len();
            holds(more == is_more, || format!("after {} of {}: more is {more}", seen.len(), ids.len()))?;
            holds(!page.is_empty(), || "an empty page, though there is more".into())?;
            after = seen.last().copied();
            if !more {
                break;
            }
        }
        holds(seen == ids, || format!("pages of {limit}: {}, wanted {}", short(&seen), short(&ids)))?;
    }
    for (after, wanted) in [(TaskId::from_bytes([0; 18]), &ids[..]), (ids[10], &ids[11..]), (ids[22], &[])] {
        let (_, page, more) = trial.page(everything(), Some(after), 100).await?;
        let seen: Vec<_> = page.iter().map(|task| task.id).collect();
        holds(seen == wanted && !more, || format!("after {after}: {}, wanted {}", short(&seen), short(&wanted)))?;
    }
    let (_, page, more) = trial.page(everything(), None, 0).await?;
    holds(page.is_empty() && more, || format!("a page of none has {}, more is {more}", page.len()))
}

pub(super) async fn a_page_has_what_its_filter_admits(trial: Trial) -> Verdict {
    let mut tasks: Vec<Shared> = Vec::new();
    for n in 0..40 {
        let mut it = Draft { owner: owner(["a", "b", "c"][n as usize % 3]), ..draft(n) };
        it.tool = ["x", "y", "x%", "X"][n as usize % 4].into();
        it.node = if n % 2 == 0 { NODE } else { OTHER_NODE };
        let moment = trial.now().await?.after(u64::from(n % 8 == 0));
        trial.pass(moment).await?;
        let mut task = trial.inserted(it).await?;
        let by = Attempt::FIRST;
        let command = match n % 5 {
            0 => None,
            1 => Some(Command::Ask { by, key: "k".into(), request: question() }),
            2 => Some(Command::Complete { by, result: json("1"), message: None }),
            3 => Some(Command::Fail { by, fault: tokkuri_core::task::Fault::internal("no") }),
            _ => Some(Command::Cancel),
        };
        if let Some(command) = command {
            task = trial.change(&task, command).await?;
        }
        tasks.push(task);
    }
    tasks.sort_by_key(|task| task.id);
    let created = tasks[7].origin.created;
    let statuses = |of: &[Status]| Filter { statuses: of.to_vec(), ..Filter::default() };
    let filters = [
        statuses(&[Status::Working]),
        statuses(&[Status::InputRequired]),
        statuses(&[Status::Completed, Status::Failed]),
        statuses(&[Status::Cancelled]),
        Filter { tool: Some("x".into()), ..Filter::default() },
        Filter { tool: Some("x%".into()), ..Filter::default() },
        Filter { owner: Some(owner("b")), ..Filter::default() },
        Filter { owner: Some(owner("d")), ..Filter::default() },
        Filter { node: Some(NODE), ..Filter::default() },
        Filter { created_before: Some(created), ..Filter::default() },
        Filter { created_before: Some(created.after(1)), ..Filter::default() },
        Filter {
            owner: Some(owner("a")),
            node: Some(OTHER_NODE),
            tool: Some("y".into()),
            ..statuses(&[Status::Working])
        },
    ];
    for filter in filters {
        let admitted: Vec<_> = tasks.iter().filter(|task| filter.admits(task)).cloned().collect();
        for limit in [3, 100] {
            let wanted = &admitted[..admitted.len().min(limit as usize)];
            let (_, page, more) = trial.page(filter.clone(), None, limit).await?;
            holds(page == wanted, || format!("{filter:?}: {}, wanted {}", short(&page), short(&wanted)))?;
            holds(more == (wanted.len() < admitted.len()), || format!("{filter:?}: more is {more}"))?;
            if let Some(last) = page.last().filter(|_| more) {
                let (_, rest, _) = trial.page(filter.clone(), Some(last.id), 100).await?;
                holds(rest == admitted[page.len()..], || format!("{filter:?}, second page: {}", short(&rest)))?;
            }
        }
    }
    Ok(())
}
