//! Reads conditions and names that come in the middle of a run, from a test in Rust: by the same rules as a file's, and with
//! the topics that exist by then.

use super::action::{NodeRef, Place};
use super::condition::{Condition, Term};
use super::diagnostics::{Diagnostics, Problems};
use super::refs::{Build, TopicFact};
use super::table::{At, Cx};
use super::types::Stage;
use super::vocabulary::Vocabulary;
use std::collections::BTreeMap;

/// A topic that exists, whether the stage names it or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LiveTopic {
    /// Its cluster's name.
    pub(crate) on: String,
    pub(crate) name: String,
    pub(crate) partitions: u32,
    pub(crate) rf: u32,
}

/// What texts may refer to.
pub(crate) struct Live<'a> {
    pub(crate) stage: &'a Stage,
    pub(crate) topics: Vec<LiveTopic>,
}

impl Live<'_> {
    /// Reads a condition, as after `when =`.
    pub(crate) fn condition(&self, text: &str) -> Result<Condition, Diagnostics> {
        self.read("condition", text, |build, at| build.condition(at))
    }

    /// Reads a term, as the keys of `expect.equals` are.
    pub(crate) fn term(&self, text: &str) -> Result<Term, Diagnostics> {
        self.read("term", text, |build, at| build.term_alone(at))
    }

    /// Reads a node, as after `node =`.
    pub(crate) fn node(&self, text: &str) -> Result<NodeRef, Diagnostics> {
        self.read("node", text, |build, at| build.node(at))
    }

    /// Reads a cluster, a site or a node, as after `between =`.
    pub(crate) fn place(&self, text: &str) -> Result<Place, Diagnostics> {
        self.read("place", text, |build, at| build.place(at))
    }

    /// Reads the name of a cluster.
    pub(crate) fn cluster(&self, text: &str) -> Result<String, Diagnostics> {
        self.read("cluster", text, |build, at| build.cluster(at))
    }

    /// Reads the name of a mirror.
    pub(crate) fn mirror(&self, text: &str) -> Result<String, Diagnostics> {
        self.read("mirror", text, |build, at| build.mirror(at))
    }

    /// Reads the name of a producer.
    pub(crate) fn producer(&self, text: &str) -> Result<String, Diagnostics> {
        self.read("producer", text, |build, at| build.producer(at))
    }

    /// The text stands in quotes, as it would in a file, so that places in it are right.
    fn read<T>(
        &self,
        what: &str,
        text: &str,
        read: impl FnOnce(&mut Build<'_>, &At<String>) -> Option<T>,
    ) -> Result<T, Diagnostics> {
        let vocabulary = Vocabulary::default();
        let quoted = format!("\"{text}\"");
        let at = At { value: text.to_owned(), span: 0..quoted.len() };
        let mut build = Build {
            cx: Cx { problems: Problems::new(what, &quoted), vocabulary: &vocabulary },
            stage: self.stage.clone(),
            topics: self.facts(),
            steps: self.stage.timeline.iter().filter_map(|step| step.name.clone()).collect(),
            deleted: std::collections::BTreeSet::new(),
            driven: std::collections::BTreeSet::new(),
            operators: self.stage.timeline.iter().map(|step| step.operator).max().unwrap_or(1),
        };
        let found = read(&mut build, &at);
        build.cx.problems.finish()?;
        found.ok_or_else(|| {
            let problem = super::Problem::new(super::Fault::Command, "unreadable", format!("`{text}` cannot be read"));
            Diagnostics::one(what, problem)
        })
    }

    fn facts(&self) -> BTreeMap<(String, String), TopicFact> {
        let declared = self.stage.topics.values().map(|topic| {
            let fact = TopicFact { partitions: topic.partitions, rf: topic.rf, family: topic.count };
            ((topic.on.clone(), topic.name.clone()), fact)
        });
        let existing = self.topics.iter().map(|topic| {
            let fact = TopicFact { partitions: topic.partitions, rf: topic.rf, family: None };
            ((topic.on.clone(), topic.name.clone()), fact)
        });
        declared.chain(existing).collect()
    }
}
