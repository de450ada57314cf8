//! Answers to the questions of a tool or task: asked at the terminal, made of defaults, or refused for want of anyone
//! to ask.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, IsTerminal as _, Write},
};

use serde_json::{Map, Value, json};

use super::{
    Exit, Stop,
    form::Form,
    show::{Show, printable},
};
use crate::client::Question;

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answerer {
    /// Whoever sits at the terminal.
    Terminal,
    /// The defaults; what has none is declined, and so is every address to open (`--yes`).
    Defaults,
    /// Nobody here.
    Nobody,
}

impl Answerer {
    /// The terminal if there is one; with `yes` the defaults.
    pub(crate) fn of(yes: bool) -> Self {
        match () {
            () if yes => Self::Defaults,
            () if io::stdin().is_terminal() && io::stderr().is_terminal() => Self::Terminal,
            () => Self::Nobody,
        }
    }

    /// Answers all of `questions`, or says how `elsewhere` they could be answered.
    ///
    /// # Errors
    /// A [`Stop`] with [`Exit::Unanswered`] where nobody here can answer; with [`Exit::Failed`] if the terminal is gone.
    pub(crate) async fn answer(
        self,
        questions: &BTreeMap<String, Question>,
        show: &Show,
        elsewhere: &str,
    ) -> Result<Map<String, Value>, Stop> {
        for (key, question) in questions {
            if question.method != "elicitation/create" {
                let line = format!("the server asks {key:?} by {}, which this client never declared", question.method);
                return Err(Stop::new(Exit::Refused, line));
            }
        }
        match self {
            Self::Nobody => Err(unanswered(questions, elsewhere)),
            Self::Defaults => Ok(questions
                .iter()
                .map(|(key, question)| {
                    let answer = by_default(question);
                    show.line(&format!("{key}: {} → {answer}", message(question)));
                    (key.clone(), answer)
                })
                .collect()),
            Self::Terminal => {
                show.pause();
                let questions = questions.clone();
                let asked = tokio::task::spawn_blocking(move || {
                    let (mut input, mut output) = (io::stdin().lock(), io::stderr());
                    questions
                        .iter()
                        .map(|(key, question)| Ok((key.clone(), interview(&mut input, &mut output, question)?)))
                        .collect::<io::Result<Map<_, _>>>()
                });
                let answers = asked.await.map_err(|error| Stop::new(Exit::Failed, error.to_string()));
                show.resume();
                answers?.map_err(|error| Stop::new(Exit::Failed, format!("the terminal cannot be read: {error}")))
            }
        }
    }
}

/// The line that tells what is asked and how it can be answered from elsewhere.
fn unanswered(questions: &BTreeMap<String, Question>, elsewhere: &str) -> Stop {
    let mut text = String::new();
    for (key, question) in questions {
        text.push_str(&format!("{key:?} is asked: {}\n", message(question)));
        if !elsewhere.is_empty() {
            let content = match is_url(question) {
                true => String::new(),
                false => format!(" --json '{}'", form(question).example()),
            };
            text.push_str(&format!("  answer: {}\n", elsewhere.replace("KEY", &format!("{key} accept{content}"))));
        }
    }
    text.push_str("there is no terminal to answer at; --yes accepts with defaults and declines what has none");
    Stop::new(Exit::Unanswered, text)
}

/// What `--yes` says: accept with defaults. Nobody opens an address here, so consent to it would be a lie.
fn by_default(question: &Question) -> Value {
    match is_url(question) {
        true => json!({ "action": "decline" }),
        false => match form(question).defaults() {
            Some(content) => json!({ "action": "accept", "content": content }),
            None => json!({ "action": "decline" }),
        },
    }
}

/// Asks one question at a terminal. The end of input is a dismissal.
fn interview(input: &mut dyn BufRead, output: &mut dyn Write, question: &Question) -> io::Result<Value> {
    let decline = json!({ "action": "decline" });
    let cancel = json!({ "action": "cancel" });
    writeln!(output, "\n{}", message(question))?;
    if is_url(question) {
        let url = question.params.get("url").and_then(Value::as_str).unwrap_or_default();
        writeln!(output, "  Open this address in a browser, if you trust it:\n  {}", printable(url))?;
        return loop {
            match line(input, output, "  accept, decline or cancel:")?.as_deref() {
                Some("accept" | "a" | "yes" | "y") => break Ok(json!({ "action": "accept" })),
                Some("decline" | "d" | "no" | "n" | ":decline") => break Ok(decline),
                None | Some("cancel" | "c" | ":cancel") => break Ok(cancel),
                Some(_) => {}
            }
        };
    }
    writeln!(output, "  (:decline refuses the question, :cancel dismisses it)")?;
    let form = form(question);
    let mut content = Map::new();
    for field in form.fields() {
        loop {
            let typed = match line(input, output, &printable(&field.prompt()))?.as_deref() {
                None | Some(":cancel") => return Ok(cancel),
                Some(":decline") => return Ok(decline),
                Some(typed) => field.read(typed),
            };
            match typed {
                Ok(Some(value)) => {
                    content.insert(field.name.clone(), value);
                    break;
                }
                Ok(None) => break,
                Err(complaint) => writeln!(output, "  ! {}", printable(&complaint))?,
            }
        }
    }
    if form.fields().is_empty() {
        return loop {
            match line(input, output, "  accept? [yes or no]:")?.as_deref() {
                Some("yes" | "y") => break Ok(json!({ "action": "accept", "content": {} })),
                Some("no" | "n" | ":decline") => break Ok(decline),
                None | Some(":cancel") => break Ok(cancel),
                Some(_) => {}
            }
        };
    }
    Ok(json!({ "action": "accept", "content": content }))
}

/// Prompts for a line; `None` at the end of input.
fn line(input: &mut dyn BufRead, output: &mut dyn Write, prompt: &str) -> io::Result<Option<String>> {
    write!(output, "{prompt} ")?;
    output.flush()?;
    let mut line = String::new();
    match input.read_line(&mut line)? {
        0 => {
            writeln!(output)?;
            Ok(None)
        }
        _ => Ok(Some(line.trim().to_owned())),
    }
}

/// What a question says, safe for a terminal.
pub(crate) fn message(question: &Question) -> String {
    let message = question.params.get("message").and_then(Value::as_str);
    printable(message.unwrap_or(&question.method))
}

fn is_url(question: &Question) -> bool {
    question.params.get("mode").and_then(Value::as_str) == Some("url")
}

fn form(question: &Question) -> Form {
    Form::read(question.params.get("requestedSchema").unwrap_or(&Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_and_age() -> Question {
        serde_json::from_value(json!({ "method": "elicitation/create", "params": {
            "mode": "form", "message": "Who are you?", "requestedSchema": {
                "type": "object", "required": ["name"], "properties": {
                    "name": { "type": "string" }, "age": { "type": "integer", "minimum": 0 },
        } } } }))
        .unwrap()
    }

    fn url() -> Question {
        serde_json::from_value(json!({ "method": "elicitation/create", "params": {
            "mode": "url", "message": "Sign in.", "url": "https://id.example.com/\u{1b}[2J" } }))
        .unwrap()
    }

    fn typed(question: &Question, lines: &str) -> (Value, String) {
        let mut output = Vec::new();
        let answer = interview(&mut lines.as_bytes(), &mut output, question).unwrap();
        (answer, String::from_utf8(output).unwrap())
    }

    #[test]
    fn a_form_is_asked_again_until_each_field_fits() {
        let (answer, shown) = typed(&name_and_age(), "\nAda\n-1\nx\n36\n");
        assert_eq!(answer, json!({ "action": "accept", "content": { "name": "Ada", "age": 36 } }));
        assert!(shown.contains("Who are you?"), "{shown}");
        assert_eq!(shown.matches("  ! ").count(), 3, "{shown}");
    }

    #[test]
    fn a_question_can_be_declined_dismissed_or_left_at_the_end_of_input() {
        for (lines, action) in
            [(":decline\n", "decline"), ("Ada\n:cancel\n", "cancel"), ("Ada\n", "cancel"), ("", "cancel")]
        {
            assert_eq!(typed(&name_and_age(), lines).0, json!({ "action": action }), "{lines:?}");
        }
    }

    #[test]
    fn an_address_is_shown_without_escapes_and_only_a_word_opens_it() {
        for (lines, action) in [("what\naccept\n", "accept"), ("n\n", "decline"), ("", "cancel")] {
            let (answer, shown) = typed(&url(), lines);
            assert_eq!(answer, json!({ "action": action }), "{lines:?}");
            assert!(shown.contains("https://id.example.com/") && !shown.contains('\u{1b}'));
        }
    }

    #[test]
    fn a_form_without_fields_is_a_yes_or_no() {
        let sure: Question = serde_json::from_value(json!({ "method": "elicitation/create", "params": {
            "message": "Sure?", "requestedSchema": { "type": "object", "properties": {} } } }))
        .unwrap();
        assert_eq!(typed(&sure, "y\n").0, json!({ "action": "accept", "content": {} }));
        assert_eq!(typed(&sure, "hm\nno\n").0, json!({ "action": "decline" }));
    }

    #[tokio::test]
    async fn without_a_terminal_the_error_names_question_and_command() {
        let questions = BTreeMap::from([("ask".to_owned(), name_and_age())]);
        let show = Show::new("t");
        let elsewhere = "tokkuri task answer T1 KEY";
        let error = Answerer::Nobody.answer(&questions, &show, elsewhere).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("\"ask\" is asked: Who are you?"), "{text}");
        assert!(text.contains("tokkuri task answer T1 ask accept --json '{\"name\":\"…\"}'"), "{text}");
        assert_eq!(Exit::of(&error.into()), Exit::Unanswered);
    }

    #[tokio::test]
    async fn yes_accepts_with_defaults_and_declines_what_has_none() {
        let mut easy = name_and_age();
        easy.params["requestedSchema"]["properties"]["name"]["default"] = json!("Ada");
        let questions =
            BTreeMap::from([("easy".to_owned(), easy), ("hard".to_owned(), name_and_age()), ("url".to_owned(), url())]);
        let answers = Answerer::Defaults.answer(&questions, &Show::new("t"), "").await.unwrap();
        assert_eq!(answers["easy"], json!({ "action": "accept", "content": { "name": "Ada" } }));
        assert_eq!(answers["hard"], json!({ "action": "decline" }));
        assert_eq!(answers["url"], json!({ "action": "decline" }));
    }

    #[tokio::test]
    async fn what_was_never_declared_is_not_answered() {
        let question: Question = serde_json::from_value(json!({ "method": "roots/list" })).unwrap();
        let questions = BTreeMap::from([("r".to_owned(), question)]);
        let error = Answerer::Defaults.answer(&questions, &Show::new("t"), "").await.unwrap_err();
        assert_eq!(Exit::of(&error.into()), Exit::Refused);
    }
}
