//! Gives the words of a condition their meaning: which topic of which cluster, which state, which node.

use super::action::NodeRef;
use super::condition::{Compare, Condition, Term, TermKind, Value, Where};
use super::condition_syntax::{parse, parse_term, Call, Expr, SyntaxError, Word};
use super::diagnostics::suggest;
use super::refs::{Build, TopicFact};
use super::table::At;
use super::types::Wanted;
use crate::units::clip;
use mirrorlab_model::states::MirrorState;
use std::ops::Range;

/// Desired states, by name.
const DESIRED: &[&str] = &["MIRRORING", "PAUSED", "STOPPED", "UNKNOWN"];

/// Maps places within a text to places in the file: exact while the text has no escapes.
struct Places<'a> {
    text: &'a At<String>,
    exact: bool,
}

impl Places<'_> {
    fn of(&self, inner: &Range<usize>) -> Range<usize> {
        if !self.exact {
            return self.text.span.clone();
        }
        let start = self.text.span.start + 1;
        let end = start + inner.end.max(inner.start);
        start + inner.start..end
    }
    fn at(&self, word: &Word) -> At<String> {
        At { value: word.text.clone(), span: self.of(&word.span) }
    }
}

impl Build<'_> {
    fn places<'a>(&self, text: &'a At<String>) -> Places<'a> {
        let inner = text.span.start + 1..text.span.end.saturating_sub(1);
        let exact = self.cx.problems.source.text.get(inner).is_some_and(|raw| raw == text.value);
        Places { text, exact }
    }

    fn syntax(&mut self, places: &Places<'_>, error: SyntaxError) {
        let example = "a condition reads `mirror(orders) == MIRRORING and lag(orders) == 0`".to_owned();
        self.cx.error(&places.of(&error.span), "bad-condition", error.message, example);
    }

    /// Reads a condition.
    pub(crate) fn condition(&mut self, text: &At<String>) -> Option<Condition> {
        let places = self.places(text);
        match parse(&text.value) {
            Ok(expr) => self.resolve(&places, &expr),
            Err(error) => {
                self.syntax(&places, error);
                None
            }
        }
    }

    fn resolve(&mut self, places: &Places<'_>, expr: &Expr) -> Option<Condition> {
        match expr {
            Expr::All(parts) => self.resolve_all(places, parts).map(Condition::All),
            Expr::Any(parts) => self.resolve_all(places, parts).map(Condition::Any),
            Expr::True(call) => {
                let term = self.term(places, call)?;
                if term.kind() == TermKind::Truth {
                    return Some(Condition::True(term));
                }
                let message = format!("`{}` is compared with nothing", term.name());
                let help = format!("add a value: `{term} == {}`", example_value(term.kind()));
                self.cx.error(&places.of(&call.span), "bad-condition", message, help);
                None
            }
            Expr::Is(call, compare, word) => {
                let term = self.term(places, call)?;
                self.comparison(places, term, *compare, word)
            }
            Expr::Both(left, compare, right) => {
                let (left, right) = (self.number_term(places, left), self.number_term(places, right));
                Some(Condition::Both(left?, *compare, right?))
            }
        }
    }

    /// A term that is compared with another one: both are numbers.
    fn number_term(&mut self, places: &Places<'_>, call: &Call) -> Option<Term> {
        let term = self.term(places, call)?;
        if term.kind() == TermKind::Number {
            return Some(term);
        }
        let message = format!("`{}` is no number and is not compared with a term", term.name());
        let help = format!("compare it with a value: `{term} == {}`", example_value(term.kind()));
        self.cx.error(&places.of(&call.span), "bad-condition", message, help);
        None
    }

    /// All parts are looked at, so that each reports what is wrong with it.
    fn resolve_all(&mut self, places: &Places<'_>, parts: &[Expr]) -> Option<Vec<Condition>> {
        let resolved: Vec<_> = parts.iter().map(|part| self.resolve(places, part)).collect();
        resolved.into_iter().collect()
    }

    fn comparison(&mut self, places: &Places<'_>, term: Term, compare: Compare, word: &Word) -> Option<Condition> {
        let at = places.at(word);
        let ordered = !matches!(compare, Compare::Equal | Compare::Other);
        let value = match term.kind() {
            TermKind::Truth => {
                let message = format!("`{}` is true or false and is compared with nothing", term.name());
                self.cx.error(&at.span, "bad-condition", message, format!("write `{term}` alone"));
                return None;
            }
            TermKind::Number => Value::Number(self.number(&at)?),
            _ if ordered => {
                let message = format!("`{}` can only be compared with `==` or `!=`", term.name());
                self.cx.error(&at.span, "bad-condition", message, format!("write `{term} == {}`", at.value));
                return None;
            }
            TermKind::State => Value::State(self.state(&at)?),
            TermKind::Desired => Value::State(self.desired(&at)?),
            TermKind::Node => Value::Node(self.leader(&at)?),
        };
        Some(Condition::Is(term, compare, value))
    }

    fn number(&mut self, at: &At<String>) -> Option<i64> {
        let number = at.value.replace('_', "").parse::<i64>().ok().filter(|n| *n >= 0);
        if number.is_none() {
            let message = format!("`{}` is not a whole number from 0", clip(&at.value, 40));
            self.cx.error(&at.span, "bad-condition", message, "write a number such as 100, without a unit".to_owned());
        }
        number
    }

    /// A mirror state by its newest or an older name.
    pub(crate) fn state(&mut self, at: &At<String>) -> Option<String> {
        if let Some(state) = MirrorState::from_name(&at.value) {
            return Some(state.name().to_owned());
        }
        let valid = MirrorState::ALL.map(MirrorState::name);
        self.cx.unknown(at, "unknown-state", ("mirror state", "states"), valid);
        None
    }

    fn desired(&mut self, at: &At<String>) -> Option<String> {
        if DESIRED.contains(&&*at.value) {
            return Some(at.value.clone());
        }
        self.cx.unknown(at, "unknown-state", ("desired state", "states"), DESIRED.iter().copied());
        None
    }

    fn leader(&mut self, at: &At<String>) -> Option<Option<NodeRef>> {
        if at.value == "none" {
            return Some(None);
        }
        match self.node(at)? {
            node @ NodeRef::Broker(..) => Some(Some(node)),
            _ => {
                let message = format!("`{}` is not one broker", clip(&at.value, 60));
                self.cx.error(&at.span, "bad-condition", message, "write \"CLUSTER/broker-N\", or none".to_owned());
                None
            }
        }
    }

    // ------------------------------------------------------------------------------------------------------------- terms

    fn term(&mut self, places: &Places<'_>, call: &Call) -> Option<Term> {
        let name = &*call.name.text;
        match name {
            "mirror" | "desired" | "lag" | "attempts" | "position_epoch" | "position_offset" => {
                let at = self.where_mirrored(places, call, name != "desired")?;
                Some(match name {
                    "mirror" => Term::Mirror(at),
                    "desired" => Term::Desired(at),
                    "lag" => Term::Lag(at),
                    "position_epoch" => Term::PositionEpoch(at),
                    "position_offset" => Term::PositionOffset(at),
                    _ => Term::Attempts(at),
                })
            }
            "leader" | "epoch" | "isr" | "end" | "start" | "stable" | "resets" | "aborts" | "commits" => {
                let at = self.where_cluster(places, call)?;
                if name == "leader" && at.partition.is_none() {
                    let help = format!("write `leader({}/{}, 0)`", at.of, at.topic);
                    let message = "`leader` needs a partition".to_owned();
                    self.cx.error(&places.of(&call.span), "bad-condition", message, help);
                    return None;
                }
                Some(match name {
                    "leader" => Term::Leader(at),
                    "epoch" => Term::Epoch(at),
                    "isr" => Term::Isr(at),
                    "end" => Term::End(at),
                    "stable" => Term::Stable(at),
                    "resets" => Term::Resets(at),
                    "aborts" => Term::Aborts(at),
                    "commits" => Term::Commits(at),
                    _ => Term::Start(at),
                })
            }
            "record_epoch" => self.record_epoch(places, call),
            "partitions" => self.one(places, call).and_then(|at| self.absent_topic(&at)).map(Term::Partitions),
            "acked" => self.one(places, call).and_then(|at| self.producer(&at)).map(Term::Acked),
            "read" => self.one(places, call).and_then(|at| self.consumer(&at)).map(Term::Read),
            "term" => self.one(places, call).and_then(|at| self.cluster(&at)).map(Term::Term),
            "up" => self.one(places, call).and_then(|at| self.node(&at)).map(Term::Up),
            "down" => self.one(places, call).and_then(|at| self.node(&at)).map(Term::Down),
            "done" => self.done(places, call),
            _ => {
                let at = places.at(&call.name);
                let message = format!("there is no term `{}`", clip(name, 40));
                self.cx.error(&at.span, "unknown-term", message, suggest(name, "terms", Term::NAMES.iter().copied()));
                None
            }
        }
    }

    /// A record by topic, partition and offset.
    fn record_epoch(&mut self, places: &Places<'_>, call: &Call) -> Option<Term> {
        let [topic, _, offset] = &call.arguments[..] else {
            let message =
                format!("`record_epoch` takes a topic, a partition and an offset, not {}", call.arguments.len());
            let help = "write `record_epoch(east/orders, 0, 6)`".to_owned();
            self.cx.error(&places.of(&call.span), "bad-condition", message, help);
            return None;
        };
        let (of, topic, fact) = self.topic_somewhere(&places.at(topic))?;
        let partition = self.partition_argument(places, call, fact)?;
        let offset = u64::try_from(self.number(&places.at(offset))?).ok()?;
        Some(Term::RecordEpoch(Where { of, topic, partition }, offset))
    }

    /// A topic that a cluster may not have: `CLUSTER/TOPIC` with a topic of any cluster.
    fn absent_topic(&mut self, at: &At<String>) -> Option<Where> {
        let elsewhere = at.value.split_once('/').filter(|(_, topic)| self.topics.keys().any(|(_, name)| name == topic));
        if let Some((cluster, topic)) = elsewhere {
            let of = self.cluster(&At { value: cluster.to_owned(), span: at.span.clone() })?;
            return Some(Where { of, topic: topic.to_owned(), partition: None });
        }
        let (of, topic, _) = self.topic_somewhere(at)?;
        Some(Where { of, topic, partition: None })
    }

    fn done(&mut self, places: &Places<'_>, call: &Call) -> Option<Term> {
        let at = self.one(places, call)?;
        if self.steps.contains(&at.value) {
            return Some(Term::Done(at.value));
        }
        let valid = self.steps.iter().map(String::as_str);
        self.cx.unknown(&at, "unknown-step", ("step", "named steps"), valid);
        None
    }

    fn arguments(&mut self, places: &Places<'_>, call: &Call, most: usize) -> bool {
        let count = call.arguments.len();
        if (1..=most).contains(&count) {
            return true;
        }
        let takes =
            if most == 1 { "one argument".to_owned() } else { "a topic and, if wanted, a partition".to_owned() };
        let message = format!("`{}` takes {takes}, not {count}", call.name.text);
        let help = format!("write `{}(…)`", call.name.text);
        self.cx.error(&places.of(&call.span), "bad-condition", message, help);
        false
    }

    fn one(&mut self, places: &Places<'_>, call: &Call) -> Option<At<String>> {
        self.arguments(places, call, 1).then(|| places.at(&call.arguments[0]))
    }

    fn where_mirrored(&mut self, places: &Places<'_>, call: &Call, by_partition: bool) -> Option<Where> {
        if !self.arguments(places, call, if by_partition { 2 } else { 1 }) {
            return None;
        }
        let (of, topic, fact) = self.mirrored(&places.at(&call.arguments[0]))?;
        let partition = self.partition_argument(places, call, fact)?;
        Some(Where { of, topic, partition })
    }

    fn where_cluster(&mut self, places: &Places<'_>, call: &Call) -> Option<Where> {
        if !self.arguments(places, call, 2) {
            return None;
        }
        let (of, topic, fact) = self.topic_somewhere(&places.at(&call.arguments[0]))?;
        let partition = self.partition_argument(places, call, fact)?;
        Some(Where { of, topic, partition })
    }

    #[allow(clippy::option_option)] // outer: is it right; inner: is it written
    fn partition_argument(&mut self, places: &Places<'_>, call: &Call, fact: TopicFact) -> Option<Option<u32>> {
        match call.arguments.get(1) {
            None => Some(None),
            Some(word) => self.partition_text(&places.at(word), fact).map(Some),
        }
    }

    /// A term that stands alone.
    pub(crate) fn term_alone(&mut self, text: &At<String>) -> Option<Term> {
        let places = self.places(text);
        match parse_term(&text.value) {
            Ok(call) => self.term(&places, &call),
            Err(error) => {
                self.syntax(&places, error);
                None
            }
        }
    }

    /// A key of `expect.equals` and the value that it must have.
    pub(crate) fn equal(&mut self, text: &At<String>, value: &At<Wanted>) -> Option<super::types::Equal> {
        let places = self.places(text);
        let call = match parse_term(&text.value) {
            Ok(call) => call,
            Err(error) => {
                self.syntax(&places, error);
                return None;
            }
        };
        let term = self.term(&places, &call)?;
        let named = |name: &String| At { value: name.clone(), span: value.span.clone() };
        let wanted = match (term.kind(), &value.value) {
            (TermKind::Number, Wanted::Number(n)) => Wanted::Number(*n),
            (TermKind::Truth, Wanted::Truth(b)) => Wanted::Truth(*b),
            (TermKind::State, Wanted::Name(name)) => Wanted::Name(self.state(&named(name))?),
            (TermKind::Desired, Wanted::Name(name)) => Wanted::Name(self.desired(&named(name))?),
            (TermKind::Node, Wanted::Name(name)) => {
                Wanted::Name(self.leader(&named(name))?.map_or_else(|| "none".to_owned(), |node| node.to_string()))
            }
            (kind, _) => {
                let message = format!("`{term}` cannot have this value");
                self.cx.error(&value.span, "wrong-type", message, format!("it is {}", example_value(kind)));
                return None;
            }
        };
        Some(super::types::Equal { term, value: wanted })
    }
}

fn example_value(kind: TermKind) -> &'static str {
    match kind {
        TermKind::Number => "100",
        TermKind::State | TermKind::Desired => "MIRRORING",
        TermKind::Node => "\"east/broker-1\"",
        TermKind::Truth => "true",
    }
}
