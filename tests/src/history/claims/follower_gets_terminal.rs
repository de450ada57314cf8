//! A follower hears states in order, and the terminal one, and nothing after it, unless its stream breaks.

use crate::history::{StreamEnd, Tasks};

/// What breaks it.
pub fn check(tasks: &Tasks<'_>) -> Vec<String> {
    tasks.each(|task| {
        let mut wrong = Vec::new();
        for (id, stream) in &task.streams {
            let states = &stream.states;
            let back = states.windows(2).find(|pair| pair[0].1.updated > pair[1].1.updated);
            wrong.extend(back.map(|pair| format!("stream {id} went back to {}", pair[1].1.updated)));
            let after = states.iter().rev().skip(1).find(|(_, state)| state.is_terminal());
            wrong.extend(after.map(|_| format!("stream {id} went on after the end")));
            let told = states.last().is_some_and(|(_, state)| state.is_terminal());
            match stream.end {
                Some((_, StreamEnd::Whole)) if !told => wrong.push(format!("stream {id} ended without the end")),
                Some((_, StreamEnd::Overdue)) => wrong.push(format!("stream {id} was never told of the end")),
                Some((_, StreamEnd::Whole | StreamEnd::Broken)) | None => {}
            }
        }
        wrong
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::history::forged::{Forged, said, state};
    use crate::history::{State, StreamEnd};

    #[test]
    fn a_stream_without_the_end_is_noticed() {
        let forged = || Forged::new().told(0, 1, state("working"));
        forged().told(100, 1, said("a")).stream_over(200, 1, StreamEnd::Whole).holds(check);
        forged().stream_over(200, 1, StreamEnd::Broken).holds(check);
        forged().stream_over(200, 1, StreamEnd::Whole).breaks(check);
        forged().stream_over(200, 1, StreamEnd::Overdue).breaks(check);
    }

    #[test]
    fn a_stream_that_goes_back_or_on_is_noticed() {
        let older = State { updated: -1, ..state("working") };
        Forged::new().told(0, 1, state("working")).told(100, 1, older).breaks(check);
        Forged::new().told(0, 1, said("a")).told(100, 1, said("a")).breaks(check);
        Forged::new().told(0, 1, said("a")).told(100, 2, said("a")).holds(check);
    }
}
