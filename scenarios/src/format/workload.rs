//! Reads `[producers]` and `[consumers]`.

use super::limits;
use super::refs::Build;
use super::table::{At, Table};
use super::types::{Acks, Consumer, Isolation, Producer, Reset, Transactions};
use crate::units::{clip, Rate, Size, Time};

const ACKS: &[(&str, Acks)] = &[("all", Acks::All), ("1", Acks::Leader), ("0", Acks::None)];
const ISOLATION: &[(&str, Isolation)] =
    &[("read_uncommitted", Isolation::ReadUncommitted), ("read_committed", Isolation::ReadCommitted)];
const RESET: &[(&str, Reset)] = &[("earliest", Reset::Earliest), ("latest", Reset::Latest), ("none", Reset::None)];

impl Build<'_> {
    pub(crate) fn clients(&mut self, root: &mut Table<'_, '_>) {
        for (name, mut t) in self.named(root, "producers", limits::CLIENTS) {
            if self.cx.problems.is_hopeless() {
                return;
            }
            self.name(&name, "a producer");
            if let Some(producer) = self.read_producer(&name, &mut t) {
                self.stage.producers.insert(name.value, producer);
            }
            t.finish(&mut self.cx);
        }
        for (name, mut t) in self.named(root, "consumers", limits::CLIENTS) {
            if self.cx.problems.is_hopeless() {
                return;
            }
            self.name(&name, "a consumer");
            if self.stage.producers.contains_key(&name.value) {
                let message = format!("`{}` is the name of a producer too", clip(&name.value, 60));
                self.cx.error(&name.span, "duplicate", message, "clients have different names: rename one".to_owned());
            }
            if let Some(consumer) = self.read_consumer(&name, &mut t) {
                self.stage.consumers.insert(name.value, consumer);
            }
            t.finish(&mut self.cx);
        }
        self.check_processes(root);
    }

    fn check_processes(&mut self, root: &mut Table<'_, '_>) {
        let producers = self.stage.producers.values().map(|p| u64::from(p.count));
        let total: u64 = producers.chain(self.stage.consumers.values().map(|c| u64::from(c.count))).sum();
        if total > limits::CLIENT_PROCESSES {
            let span = root.key_span("producers");
            let message = format!("{total} producers and consumers in all are too many");
            self.cx.error(&span, "too-many", message, format!("the limit is {}", limits::CLIENT_PROCESSES));
        }
    }

    /// `topic` or `topics`, each of which must exist on the cluster.
    fn client_topics(&mut self, t: &mut Table<'_, '_>, on: Option<&str>) -> Vec<String> {
        t.exclusive(&mut self.cx, "topics", "topic");
        let mut topics: Vec<At<String>> = t.texts(&mut self.cx, "topics").unwrap_or_default();
        topics.extend(t.text(&mut self.cx, "topic"));
        if topics.is_empty() && !t.has("topic") {
            t.missing(&mut self.cx, "topic", "\"orders\"");
        }
        if topics.len() > limits::CLIENT_TOPICS {
            let span = t.key_span("topics");
            let message = format!("{} topics in {} are too many", topics.len(), t.what);
            let help = format!("the limit is {}; a family (`count` of a topic) counts once", limits::CLIENT_TOPICS);
            self.cx.error(&span, "too-many", message, help);
            topics.truncate(limits::CLIENT_TOPICS);
        }
        if let Some(on) = on {
            for at in &topics {
                self.topic(on, at);
            }
        }
        topics.into_iter().map(|at| at.value).collect()
    }

    /// The site of a client, from which its cluster must be reachable.
    fn client_site(&mut self, name: &At<String>, t: &mut Table<'_, '_>, on: Option<&str>) -> String {
        let home = on.and_then(|on| self.stage.clusters.get(on)).map(|c| c.site.clone()).unwrap_or_default();
        let Some(at) = t.text(&mut self.cx, "site") else { return home };
        let Some(site) = self.site(&at) else { return home };
        self.joined(&site, &home, &at.span, &format!("client `{}`", clip(&name.value, 60)));
        site
    }

    fn read_producer(&mut self, name: &At<String>, t: &mut Table<'_, '_>) -> Option<Producer> {
        let on = self.on(t, "on");
        let topics = self.client_topics(t, on.as_deref());
        t.exclusive(&mut self.cx, "rate", "every");
        let rate: Option<Rate> = t.unit(&mut self.cx, "rate");
        let every: Option<Time> = t.duration(&mut self.cx, "every");
        if !t.has("rate") && !t.has("every") && !self.driven.contains(&name.value) {
            let message = format!("nothing makes producer `{}` send", clip(&name.value, 60));
            let help = "add `rate = \"2000/s\"`, or `every = \"10 s\"` (one record to each partition), or a step with \
                        `do = \"produce\"` that names it";
            self.cx.error(&t.span, "missing-key", message, help.to_owned());
        }
        let record: Size = t.unit(&mut self.cx, "record").unwrap_or(Size(100));
        self.check_record(t, record);
        let cx = &mut self.cx;
        let acks = t.one_of(cx, "acks", ACKS).unwrap_or_default();
        let idempotent = t.boolean(cx, "idempotent").unwrap_or(acks == Acks::All);
        let linger = t.unit(cx, "linger").unwrap_or(Time::millis(5));
        let batch: Size = t.unit(cx, "batch").unwrap_or(Size(16 << 10));
        let in_flight = t.count32(cx, "in_flight", 1..=1_000).unwrap_or(5);
        let first_sequence = t.count32(cx, "first_sequence", 0..=i32::MAX as u32);
        let delivery_timeout = t.duration(cx, "delivery_timeout").unwrap_or(Time::secs(120));
        let request_timeout = t.duration(cx, "request_timeout").unwrap_or(Time::secs(30));
        let records = t.count(cx, "records", 1..=1_000_000_000_000).map(|n| n.value);
        let keys = t.count(cx, "keys", 0..=1_000_000_000).map_or(0, |n| n.value);
        let tombstone_every = t.count(cx, "tombstone_every", 2..=1_000_000_000);
        if let Some(every) = tombstone_every.as_ref().filter(|_| keys == 0) {
            let message = "`tombstone_every` deletes keys, and the records of this producer have none".to_owned();
            self.cx.error(&every.span, "conflict", message, "add `keys = 100`, or remove `tombstone_every`".to_owned());
        }
        let tombstone_every = tombstone_every.map(|n| n.value);
        let cx = &mut self.cx;
        let count = t.count32(cx, "count", 1..=10_000).unwrap_or(1);
        let (start, stop) = self.life(t);
        let transactions = self.transactions(t, count);
        self.check_idempotence(t, acks, idempotent, in_flight, transactions.is_some());
        let site = self.client_site(name, t, on.as_deref());
        Some(Producer {
            on: on?,
            topics,
            rate,
            every,
            record,
            acks,
            idempotent,
            linger,
            batch,
            in_flight,
            first_sequence,
            delivery_timeout,
            request_timeout,
            start,
            stop,
            records,
            keys,
            tombstone_every,
            transactions,
            count,
            site,
        })
    }

    /// Records carry an identity of 32 bytes, by which checkers know them, and fit a request.
    fn check_record(&mut self, t: &mut Table<'_, '_>, record: Size) {
        let span = t.raw("record").map_or_else(|| t.span.clone(), toml::Spanned::span);
        let (least, most) = (32, 16 << 20);
        if !(least..=most).contains(&record.0) {
            let message = format!("`record` in {} is {record}", t.what);
            let help = format!("a record has {} (its identity) to {}", Size(least), Size(most));
            self.cx.error(&span, "out-of-range", message, help);
        }
    }

    fn check_idempotence(
        &mut self,
        t: &mut Table<'_, '_>,
        acks: Acks,
        idempotent: bool,
        in_flight: u32,
        transactions: bool,
    ) {
        let span = t.key_span("idempotent");
        if idempotent && acks != Acks::All {
            let message = format!("an idempotent producer needs acks `all`, in {}", t.what);
            self.cx.error(&span, "conflict", message, "write `acks = \"all\"`, or `idempotent = false`".to_owned());
        } else if idempotent && in_flight > 5 {
            let span = t.key_span("in_flight");
            let message = format!("an idempotent producer has at most 5 requests in flight, in {}", t.what);
            self.cx.error(&span, "conflict", message, "lower `in_flight`, or write `idempotent = false`".to_owned());
        } else if transactions && !idempotent {
            // Without a word on it, a producer is idempotent exactly if all have to acknowledge.
            let key = if t.has("idempotent") { "idempotent" } else { "acks" };
            let message = format!("a transactional producer is idempotent, and needs acks `all`, in {}", t.what);
            let help = if key == "acks" { "write `acks = \"all\"`" } else { "remove `idempotent = false`" };
            self.cx.error(&t.key_span(key), "conflict", message, help.to_owned());
        }
    }

    fn transactions(&mut self, t: &mut Table<'_, '_>, count: u32) -> Option<Transactions> {
        let what = format!("`transactions` of {}", t.what);
        let mut inner = t.table(&mut self.cx, "transactions", what)?;
        let cx = &mut self.cx;
        if !inner.has("records") && !inner.has("duration") {
            inner.missing(cx, "records", "10");
        }
        let records = inner.count32(cx, "records", 1..=1_000_000);
        let duration = inner.duration(cx, "duration");
        let id = inner.text(cx, "id");
        if let Some(at) = id.as_ref().filter(|_| count > 1) {
            let message = format!("{count} producers with one transactional id, in {}", inner.what);
            let help = "they would fence each other: remove `id` (each takes its own name), or write them one by one";
            cx.error(&at.span, "conflict", message, help.to_owned());
        }
        if let Some(at) = id.as_ref().filter(|at| at.value.is_empty()) {
            let message = format!("`id` in {} is empty: no broker takes such a transactional id", inner.what);
            cx.error(&at.span, "empty", message, "remove `id`: the producer's own name is taken then".to_owned());
        }
        let abort = inner.chance(cx, "abort").unwrap_or_default();
        let timeout = inner.duration(cx, "timeout").unwrap_or(Time::secs(60));
        inner.finish(cx);
        Some(Transactions { id: id.map(|at| at.value), records, duration, abort, timeout })
    }

    /// `start` and `stop`, in that order.
    fn life(&mut self, t: &mut Table<'_, '_>) -> (Time, Option<Time>) {
        let start: Time = t.unit(&mut self.cx, "start").unwrap_or_default();
        let stop: Option<Time> = t.unit(&mut self.cx, "stop");
        if stop.is_some_and(|stop| stop <= start) {
            let span = t.key_span("stop");
            let message = format!("`stop` is not after `start` in {}", t.what);
            self.cx.error(&span, "conflict", message, format!("it starts at {start}"));
        }
        (start, stop)
    }

    fn read_consumer(&mut self, name: &At<String>, t: &mut Table<'_, '_>) -> Option<Consumer> {
        let on = self.on(t, "on");
        let topics = self.client_topics(t, on.as_deref());
        let cx = &mut self.cx;
        let group = t.text(cx, "group");
        let isolation = t.one_of(cx, "isolation", ISOLATION).unwrap_or_default();
        let reset = t.one_of(cx, "reset", RESET).unwrap_or_default();
        let commit_every: Option<Time> = t.duration(cx, "commit_every");
        let poll_end: Option<Time> = t.duration(cx, "poll_end");
        let count = t.count32(cx, "count", 1..=10_000).unwrap_or(1);
        let (start, stop) = self.life(t);
        if let Some(group) = &group {
            self.name(group, "a group");
        }
        if group.is_none() && t.has("commit_every") {
            let span = t.key_span("commit_every");
            let message = format!("{} commits without a group", t.what);
            self.cx.error(&span, "conflict", message, "add `group = \"…\"`, or remove `commit_every`".to_owned());
        }
        let commit_every = commit_every.or(group.as_ref().map(|_| Time::secs(5)));
        let site = self.client_site(name, t, on.as_deref());
        let group = group.map(|at| at.value);
        Some(Consumer { on: on?, topics, group, isolation, reset, commit_every, poll_end, start, stop, count, site })
    }
}
