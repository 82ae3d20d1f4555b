//! Requests of one connection go one at a time and are answered in order, as the prototype's socket server has it.

use crate::broker::broker::Broker;
use crate::broker::lanes::Task;
use crate::ids::{ConnId, Now};
use crate::ports::Cx;
use crate::wire::messages::{Body, Message};

impl Broker {
    /// Handles a connection's next request.
    pub(crate) fn run_request(&mut self, conn: ConnId, now: Now, cx: &mut Cx) {
        let Some(inbound) = self.conns.get_mut(&conn) else { return };
        let Some(Message { correlation, body }) = inbound.queue.pop_front() else {
            inbound.busy = false;
            return;
        };
        match body {
            Body::ProduceRequest(request) => self.on_produce(conn, correlation, &request, now, cx),
            Body::FetchRequest(request) => self.on_fetch(conn, correlation, &request, now, cx),
            Body::ListOffsetsRequest(request) => self.on_list_offsets(conn, correlation, &request, now, cx),
            Body::OffsetForLeaderEpochRequest(request) => self.on_epochs(conn, correlation, &request, cx),
            Body::MetadataRequest(request) => self.on_metadata_request(conn, correlation, &request, cx),
            Body::InitProducerIdRequest(request) => self.on_init_producer_id(conn, correlation, &request, now, cx),
            Body::DeleteRecordsRequest(request) => self.on_delete_records(conn, correlation, &request, cx),
            Body::OffsetCommitRequest(request) => self.on_offset_commit(conn, correlation, &request, cx),
            Body::OffsetFetchRequest(request) => self.on_offset_fetch(conn, correlation, &request, cx),
            Body::FindCoordinatorRequest(request) => self.on_find_coordinator(conn, correlation, &request, now, cx),
            Body::AddPartitionsToTxnRequest(request) => self.on_add_partitions(conn, correlation, &request, now, cx),
            Body::EndTxnRequest(request) => self.on_end_txn(conn, correlation, &request, None, now, cx),
            Body::WriteTxnMarkersRequest(request) => self.on_write_markers(conn, correlation, &request, now, cx),
            body => {
                let Some(body) = self.on_operator(conn, correlation, body, now, cx) else { return };
                let (mirror, mut task) = self.mirror_room();
                if !mirror.on_request(now, conn, correlation, &body, &mut task, cx) {
                    self.forward(conn, correlation, body, now, cx);
                }
            }
        }
    }

    /// Answers, and takes up the connection's next request.
    pub(crate) fn respond(&mut self, conn: ConnId, correlation: u32, body: Body, cx: &mut Cx) {
        if self.conns.contains_key(&conn) {
            cx.send(conn, Message { correlation, body });
            self.release(conn, cx);
        }
    }

    /// Ends a request, answered or not.
    pub(crate) fn release(&mut self, conn: ConnId, cx: &mut Cx) {
        let Some(inbound) = self.conns.get_mut(&conn) else { return };
        inbound.busy = !inbound.queue.is_empty();
        if inbound.busy {
            cx.wake(self.lanes.file(Task::Request(conn)));
        }
    }
}
