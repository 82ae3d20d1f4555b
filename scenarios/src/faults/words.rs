//! What steps are called in the story of a run.

use crate::format::action::Action;

pub(super) fn target_text(action: &Action) -> String {
    if let Some(node) = action.node() {
        return format!(" {node}");
    }
    match action {
        Action::Partition { between: Some([a, b]), one_way, .. } => {
            format!(" {a} {} {b}", if *one_way { "->" } else { "|" })
        }
        Action::Latency { link, latency, .. } => format!(" {link} {latency}"),
        Action::Loss { link, .. } => format!(" {link}"),
        Action::Bandwidth { link, bandwidth, .. } => format!(" {link} {bandwidth}"),
        Action::Elect { on, topic, partition, .. } => {
            format!(" {on}/{topic}{}", partition.map_or(String::new(), |p| format!("-{p}")))
        }
        Action::CreateTopic { on, topic, .. }
        | Action::DeleteTopic { on, topic }
        | Action::AddPartitions { on, topic, .. }
        | Action::DeleteRecords { on, topic, .. }
        | Action::BumpEpoch { on, topic, .. } => {
            format!(" {on}/{topic}")
        }
        Action::ResetConnections { link: Some(link), .. } => format!(" {link}"),
        Action::SetClusterId { on, node: None, id } => format!(" {on} {id}"),
        Action::SetClusterId { node: Some(node), id, .. } => format!(" {node} {id}"),
        Action::Foreign { on, answers, .. } => {
            let of = crate::format::action::Answers::NAMED.iter().find(|(_, a)| a == answers);
            format!(" {on} {}", of.map_or("", |(name, _)| name))
        }
        Action::SnapshotCluster { on } | Action::RestoreCluster { on } => format!(" {on}"),
        Action::CreateMirror { mirror } | Action::DeleteMirror { mirror } => format!(" {mirror}"),
        Action::StartMirror { mirror, topics }
        | Action::StopMirror { mirror, topics }
        | Action::PauseMirror { mirror, topics }
        | Action::ResumeMirror { mirror, topics }
        | Action::RecoverMirror { mirror, topics, .. } => {
            let topics = if topics.is_empty() { String::new() } else { format!(" [{}]", topics.join(", ")) };
            format!(" {mirror}{topics}")
        }
        Action::Cli { on, args, .. } => format!(" on {on}: {args}"),
        Action::Duplicate { kind, .. } | Action::DelayMessages { kind, .. } => format!(" {kind}"),
        _ => String::new(),
    }
}
