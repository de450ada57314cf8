//! Tools that ask.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::FuturesUnordered;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokkuri_server::tool::{
    BlockingContext, Consent, Elicited, PrepareContext, RunContext, Structured, TaskMode, Tool, ToolError,
};

use super::{Bed, Nothing};

#[derive(Deserialize, JsonSchema)]
struct Ask {
    message: String,
    key: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct AskBlocking {
    n: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Restless {
    changes: u32,
    every_ms: u64,
}

#[derive(Deserialize, JsonSchema)]
struct AskMany {
    n: u32,
    #[serde(default)]
    parallel: bool,
}

/// The form of all of them.
#[derive(Deserialize, JsonSchema)]
struct Person {
    name: String,
    #[expect(dead_code, reason = "it is asked for, to have a field that may be left out")]
    age: Option<u32>,
}

/// Without arguments for the client; `prepare` fills in the name.
#[derive(Deserialize, Serialize, JsonSchema)]
struct Prepared {
    #[serde(default)]
    #[schemars(skip)]
    answer: Option<String>,
}

fn said(answer: Elicited<Person>) -> String {
    match answer {
        Elicited::Accepted(person) => format!("hello {}", person.name),
        Elicited::Declined => "declined".into(),
        Elicited::Dismissed => "dismissed".into(),
    }
}

fn name(answer: Elicited<Person>) -> String {
    match answer {
        Elicited::Accepted(person) => person.name,
        Elicited::Declined => "declined".into(),
        Elicited::Dismissed => "dismissed".into(),
    }
}

pub(super) fn tools(bed: &Bed) -> Vec<Tool> {
    vec![
        ask("ask", bed),
        ask("scoped_ask", bed).description("Asks for a name; needs the scope files:write").scopes(["files:write"]),
        ask_many(bed),
        ask_blocking(bed),
        restless(bed),
        ask_again(bed),
        ask_url(bed),
        sample(bed),
        roots(bed),
        prepare_ask(bed),
    ]
}

fn ask(tool: &'static str, bed: &Bed) -> Tool {
    let bed = bed.clone();
    Tool::new(tool, move |args: Ask, cx: RunContext| {
        let alive = bed.alive();
        async move {
            let _alive = alive;
            let key = args.key.unwrap_or_else(|| "ask".into());
            Ok(said(cx.elicit::<Person>(key, &args.message).await?))
        }
    })
    .description("Asks for a name")
    .task(TaskMode::Optional)
}

fn ask_many(bed: &Bed) -> Tool {
    let bed = bed.clone();
    Tool::new("ask_many", move |args: AskMany, cx: RunContext| {
        let alive = bed.alive();
        async move {
            let _alive = alive;
            let ask = |n: u32| {
                let cx = cx.clone();
                async move { cx.elicit::<Person>(format!("q{n}"), &format!("Who is q{n}?")).await.map(name) }
            };
            let names: Vec<String> = if args.parallel {
                join_all((1..=args.n).map(ask)).await.into_iter().collect::<Result<_, _>>()?
            } else {
                let mut names = Vec::new();
                for n in 1..=args.n {
                    names.push(ask(n).await?);
                }
                names
            };
            Ok(names.join(","))
        }
    })
    .description("Asks many times, at once or one after another")
    .task(TaskMode::Optional)
}

fn restless(bed: &Bed) -> Tool {
    let bed = bed.clone();
    Tool::new("restless", move |args: Restless, cx: RunContext| {
        let alive = bed.alive();
        async move {
            let _alive = alive;
            let mut ticks = tokio::time::interval(Duration::from_millis(args.every_ms.max(1)));
            let mut asked = FuturesUnordered::new();
            for n in 1..=args.changes {
                ticks.tick().await;
                let cx = cx.clone();
                asked.push(tokio::spawn(async move { cx.elicit::<Person>(format!("q{n}"), "Who?").await.map(name) }));
            }
            let mut answered = 0;
            while let Some(answer) = asked.next().await {
                answer.map_err(|error| ToolError::internal(error.to_string()))??;
                answered += 1;
            }
            Ok(format!("{answered} answers"))
        }
    })
    .description("Asks a question every so often, without waiting for the answers of those before")
    .task(TaskMode::Optional)
}

fn ask_blocking(bed: &Bed) -> Tool {
    let bed = bed.clone();
    Tool::blocking("ask_blocking", move |args: AskBlocking, cx: BlockingContext| {
        let _alive = bed.alive();
        let ask = |n: u32| cx.elicit::<Person>(format!("q{n}"), &format!("Who is q{n}?")).map(name);
        let names: Vec<String> = (1..=args.n).map(ask).collect::<Result<_, _>>()?;
        Ok(names.join(","))
    })
    .description("Asks one after another, from a thread that it blocks")
    .task(TaskMode::Optional)
}

fn ask_again(bed: &Bed) -> Tool {
    let bed = bed.clone();
    Tool::new("ask_again", move |_: Nothing, cx: RunContext| {
        let alive = bed.alive();
        async move {
            let _alive = alive;
            let first = said(cx.elicit::<Person>("k", "Who?").await?);
            let second = said(cx.elicit::<Person>("k", "And who?").await?);
            Ok(format!("{first} {second}"))
        }
    })
    .description("Asks under one key twice")
    .task(TaskMode::Optional)
}

fn ask_url(bed: &Bed) -> Tool {
    let bed = bed.clone();
    Tool::new("ask_url", move |_: Nothing, cx: RunContext| {
        let alive = bed.alive();
        async move {
            let _alive = alive;
            let action = match cx.elicit_url("url", "Open this?", "https://example.com/consent").await? {
                Consent::Accepted => "accept",
                Consent::Declined => "decline",
                Consent::Dismissed => "cancel",
            };
            Ok(super::json_text(&serde_json::json!({ "action": action })))
        }
    })
    .description("Asks to open a URL")
    .task(TaskMode::Optional)
}

fn sample(bed: &Bed) -> Tool {
    let bed = bed.clone();
    Tool::new("sample", move |_: Nothing, cx: RunContext| {
        let alive = bed.alive();
        async move {
            let _alive = alive;
            let params = serde_json::json!({
                "messages": [{"role": "user", "content": {"type": "text", "text": "The capital of France?"}}],
                "maxTokens": 100,
            });
            let answer = cx.sample("sample", &params).await?;
            Ok(answer.as_str().to_owned())
        }
    })
    .description("Asks the client's model")
    .task(TaskMode::Optional)
}

fn roots(bed: &Bed) -> Tool {
    let bed = bed.clone();
    Tool::new("roots", move |_: Nothing, cx: RunContext| {
        let alive = bed.alive();
        async move {
            let _alive = alive;
            let roots = cx.roots("roots").await?;
            let roots: Vec<_> =
                roots.into_iter().map(|root| serde_json::json!({ "uri": root.uri, "name": root.name })).collect();
            Ok(Structured(serde_json::json!({ "roots": roots })))
        }
    })
    .description("Asks for the client's roots")
    .task(TaskMode::Optional)
}

fn prepare_ask(bed: &Bed) -> Tool {
    let bed = bed.clone();
    Tool::new("prepare_ask", move |args: Prepared, _| {
        let alive = bed.alive();
        async move {
            let _alive = alive;
            args.answer.ok_or_else(|| ToolError::internal("prepare left no answer"))
        }
    })
    .prepare(|_: Prepared, cx: PrepareContext| async move {
        let answer = said(cx.elicit::<Person>("user", "Who are you?").await?);
        cx.set_arguments(&Prepared { answer: Some(answer) })?;
        Ok(())
    })
    .description("Asks on the request, then becomes a task")
    .task(TaskMode::Optional)
}
