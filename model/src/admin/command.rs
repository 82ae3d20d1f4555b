//! What was typed, and what it means: the tool's options and their rules (spec 9.6). A call that breaks a rule ends with a message
//! and exit code 1 before any request is sent.

use crate::admin::NAMES;
use crate::client::commands::Command;
use crate::client::mirror_orders::{MirrorOrder, Which};
use crate::metadata::configs::parse_nodes;
use crate::metadata::patterns::Patterns;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A call that keeps the rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// `--bootstrap-server`.
    pub bootstrap: Arc<str>,
    /// What to do.
    pub action: Action,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// `--create`: the mirror, and the name of the file with its settings.
    Create(Arc<str>, Arc<str>),
    /// `--start`: the mirror, patterns to include and to exclude.
    Start(Arc<str>, Vec<Arc<str>>, Vec<Arc<str>>),
    /// `--stop`: the mirror and patterns.
    Stop(Arc<str>, Vec<Arc<str>>),
    /// `--pause`.
    Pause(Arc<str>, Vec<Arc<str>>),
    /// `--resume`.
    Resume(Arc<str>, Vec<Arc<str>>),
    /// `--recover`: this project's own; the older tools have the request and no option for it.
    Recover(Arc<str>, Vec<Arc<str>>),
    /// `--delete`.
    Delete(Arc<str>),
    /// `--list`.
    List,
    /// `--describe`.
    Describe {
        /// Of one mirror, or of all.
        mirror: Option<Arc<str>>,
        /// As JSON.
        json: bool,
        /// Only what failed.
        failed: bool,
    },
}

/// The actions, in the order in which they are listed to whoever names none or two.
const ACTIONS: [&str; 9] =
    ["--create", "--start", "--stop", "--pause", "--resume", "--recover", "--list", "--describe", "--delete"];
/// Options that have a value.
const VALUED: [&str; 6] =
    ["--bootstrap-server", "--command-config", "--mirror", "--mirror-config", "--topics", "--exclude"];
/// Options that have none.
const FLAGS: [&str; 2] = ["--json", "--failed"];

/// Understands the words of a call. `bootstrap` is where it goes if the words do not say.
///
/// # Errors
/// The message for whoever typed it.
pub fn parse(words: &[&str], bootstrap: Option<&str>) -> Result<Call, String> {
    let typed = typed(words)?;
    let given: Vec<&str> = ACTIONS.into_iter().filter(|action| typed.contains_key(action)).collect();
    let [action] = given[..] else {
        return Err(format!("Command must include exactly one action: {}", ACTIONS.join(", ")));
    };
    let value = |option: &str| typed.get(option).and_then(Option::as_deref).map(Arc::<str>::from);
    let Some(bootstrap) = value("--bootstrap-server").or_else(|| bootstrap.map(Arc::from)) else {
        return Err("--bootstrap-server must be specified".to_owned());
    };
    let is_given = |option: &str| typed.contains_key(option);
    for flag in FLAGS {
        if is_given(flag) && action != "--describe" {
            return Err(format!("{flag} is only supported for describing mirrors"));
        }
    }
    if is_given("--exclude") && action != "--start" {
        return Err("--exclude is only valid with --start".to_owned());
    }
    let mirror = value("--mirror");
    let needs_mirror = || mirror.clone().ok_or_else(|| "--mirror must be specified".to_owned());
    let list = |option: &str| Patterns::items(typed.get(option).and_then(Option::as_deref).unwrap_or_default());
    let topics = |doing: &str| match value("--topics") {
        Some(_) => checked(list("--topics")),
        None => Err(format!("--topics must be specified when {doing} mirror topic(s)")),
    };
    let action = match action {
        "--create" => {
            let mirror = needs_mirror()?;
            let file = value("--mirror-config");
            Action::Create(mirror, file.ok_or("--mirror-config must be specified when creating a mirror")?)
        }
        "--start" => Action::Start(needs_mirror()?, topics("starting")?, checked(list("--exclude"))?),
        "--stop" => Action::Stop(needs_mirror()?, topics("stopping")?),
        "--pause" => Action::Pause(needs_mirror()?, topics("pausing")?),
        "--resume" => Action::Resume(needs_mirror()?, topics("resuming")?),
        "--recover" => Action::Recover(needs_mirror()?, topics("recovering")?),
        "--delete" => Action::Delete(needs_mirror()?),
        "--list" => Action::List,
        _ => Action::Describe { mirror, json: is_given("--json"), failed: is_given("--failed") },
    };
    Ok(Call { bootstrap, action })
}

/// Options and their values, each at most once.
fn typed<'w>(words: &[&'w str]) -> Result<BTreeMap<&'w str, Option<String>>, String> {
    let mut typed = BTreeMap::new();
    let mut words = words.iter().copied().peekable();
    if words.peek().is_some_and(|word| NAMES.contains(&word.trim_end_matches(".sh"))) {
        words.next();
    }
    while let Some(word) = words.next() {
        let (option, inline) = match word.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (option, Some(value.to_owned())),
            _ => (word, None),
        };
        let value = if VALUED.contains(&option) {
            let next = || words.next_if(|next| !next.starts_with("--")).map(str::to_owned);
            Some(inline.or_else(next).ok_or_else(|| format!("Option {option} requires an argument"))?)
        } else if ACTIONS.contains(&option) || FLAGS.contains(&option) {
            if inline.is_some() {
                return Err(format!("Option {option} takes no argument"));
            }
            None
        } else {
            return Err(format!("{option} is not a recognized option"));
        };
        if typed.insert(option, value).is_some() {
            return Err(format!("Found multiple arguments for option {option}, but you asked for only one"));
        }
    }
    Ok(typed)
}

/// A pattern that is none is refused here, not at the next look at the source (BAD-12, E-24).
fn checked(patterns: Vec<Arc<str>>) -> Result<Vec<Arc<str>>, String> {
    match Patterns::new(patterns.clone()) {
        Ok(_) => Ok(patterns),
        Err(bad) => Err(format!("Invalid regular expression: {bad}")),
    }
}

impl Call {
    /// The order for the admin client. `file` gives the text of a file of settings.
    ///
    /// # Errors
    /// A file that is not there, or a line in it that is no setting.
    pub fn command(&self, file: impl Fn(&str) -> Option<String>) -> Result<Command, String> {
        // Every word is a pattern, and an edit of the mirror's lists (CLI-15).
        let which = |patterns: &Vec<Arc<str>>| Which { names: Vec::new(), patterns: patterns.clone(), edits: true };
        Ok(match &self.action {
            Action::Create(mirror, name) => {
                let text = file(name).ok_or_else(|| format!("{name} (No such file or directory)"))?;
                let configs = properties(&text)?;
                let list = configs.iter().find(|(key, _)| &**key == "bootstrap.servers");
                let source = list.and_then(|(_, nodes)| parse_nodes(nodes)).unwrap_or_default();
                Command::CreateClusterMirror { mirror: mirror.clone(), source, configs }
            }
            Action::Start(mirror, include, exclude) => Command::Mirror(MirrorOrder::Start {
                mirror: mirror.clone(),
                include: include.clone(),
                exclude: exclude.clone(),
            }),
            Action::Stop(mirror, topics) => Command::Mirror(MirrorOrder::Stop(mirror.clone(), which(topics))),
            Action::Pause(mirror, topics) => Command::Mirror(MirrorOrder::Pause(mirror.clone(), which(topics))),
            Action::Resume(mirror, topics) => Command::Mirror(MirrorOrder::Resume(mirror.clone(), which(topics))),
            Action::Recover(mirror, topics) => {
                // Stopped topics fail too, and are in no list: names go out as names.
                let which = Which::of(topics, false);
                Command::Mirror(MirrorOrder::Recover { mirror: mirror.clone(), which, keep_source: false })
            }
            Action::Delete(mirror) => Command::Mirror(MirrorOrder::Delete(mirror.clone())),
            Action::List => Command::Mirror(MirrorOrder::List),
            Action::Describe { mirror, .. } => {
                let mirrors = mirror.clone().map(|mirror| vec![mirror]);
                Command::Mirror(MirrorOrder::Describe { mirrors })
            }
        })
    }
}

/// Keys and values, in order.
type Entries = Vec<(Arc<str>, Arc<str>)>;

/// `key=value` lines; `#` and `!` begin remarks.
fn properties(text: &str) -> Result<Entries, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', '!']));
    let setting = |line: &str| match line.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().into(), value.trim().into())),
        _ => Err(format!("not a setting: {line}")),
    };
    lines.map(setting).collect()
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
