//! What a changed configuration does to a mirror that runs (peer case CLI-10): where its source is looked for, how long that one
//! may take, and how fetchers ask. No partition fails or moves; the connections that it is about are made anew, once.

use crate::ids::{ConnId, MirrorIx, Nanos, NodeId};
use crate::metadata::configs::MirrorConfig;
use crate::metadata::image::MetadataImage;
use crate::mirror::fetcher::{Asked, FetchLimits, Fetcher};
use crate::mirror::manager::MirrorManager;
use crate::mirror::sync::Source;
use crate::ports::Cx;

impl FetchLimits {
    /// What a mirror's configuration says.
    #[must_use]
    pub fn of(config: &MirrorConfig) -> Self {
        Self {
            max_wait: Nanos::from_millis(u64::from(config.fetch_wait_max_ms)),
            min_bytes: config.fetch_min_bytes,
            max_bytes: config.fetch_response_max_bytes,
            partition_max_bytes: config.fetch_max_bytes,
            backoff: Nanos::from_millis(config.fetch_backoff_ms),
            timeout: Nanos::from_millis(config.socket_timeout_ms),
        }
    }
}

impl Fetcher {
    /// Asks anew, under these limits. Gives the connection that ends with that.
    fn take_limits(&mut self, limits: FetchLimits, cx: &mut Cx<'_>) -> Option<ConnId> {
        let conn = self.link.close(cx);
        self.link.set_timeout(limits.timeout);
        self.limits = limits;
        self.appetite = limits.max_bytes;
        self.asked = Asked::Nothing;
        self.reset_session();
        conn
    }
}

impl Source {
    /// Takes what the configuration says. Another list of servers ends the connection that was made by the old one: says whether
    /// it is another one, and which connection ended.
    fn take_settings(&mut self, config: &MirrorConfig, nodes: &[NodeId], cx: &mut Cx<'_>) -> (bool, Option<ConnId>) {
        self.timeout = Nanos::from_millis(config.request_timeout_ms);
        self.expected_id = config.source_cluster_id.clone();
        self.link.set_timeout(self.timeout);
        if self.bootstrap == nodes {
            return (false, None);
        }
        self.bootstrap = nodes.to_vec();
        self.next_bootstrap = 0;
        // The question under way is asked again.
        self.awaiting.append(&mut self.asked);
        self.due = Nanos::ZERO;
        (true, self.link.close(cx))
    }
}

impl MirrorManager {
    /// A mirror's configuration may have changed.
    pub(super) fn note_settings(&mut self, mirror: MirrorIx, image: &MetadataImage, cx: &mut Cx<'_>) {
        let Some(entry) = image.mirror(mirror) else { return };
        let limits = FetchLimits::of(&entry.config);
        let (mut closed, mut elsewhere) = (Vec::new(), false);
        if let Some(source) = self.sources.get_mut(&mirror) {
            let (moved, conn) = source.take_settings(&entry.config, &entry.source_nodes, cx);
            elsewhere = moved;
            closed.extend(conn);
        }
        for at in 0..self.fetchers.len() {
            let fetcher = &mut self.fetchers[at];
            // By other servers the source may be reached on another way: what was connected by the old ones is too (spec 1.11).
            if fetcher.key.mirror == mirror && (elsewhere || fetcher.limits != limits) {
                closed.extend(fetcher.take_limits(limits, cx));
                self.kick(at as u32, cx);
            }
        }
        if !closed.is_empty() {
            self.tick_soon(cx);
        }
        closed.into_iter().for_each(|conn| self.disown(conn));
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
