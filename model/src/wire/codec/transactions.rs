//! Transactions (KIP-98): FindCoordinator (4), AddPartitionsToTxn (3), EndTxn (5), WriteTxnMarkers (1, 2).

use crate::wire::codec::coder::{Coder, Done, Wire, Wrong};
use crate::wire::codec::directory::PORT;
use crate::wire::codec::topics::By;
use crate::wire::messages::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, CoordinatorKind, EndTxnRequest, EndTxnResponse,
    FindCoordinatorRequest, FindCoordinatorResponse, TxnMarker, TxnMarkerAnswer, WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
};

impl Wire for FindCoordinatorRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        let mut kind = self.kind as i8;
        c.i8("KeyType", &mut kind)?;
        self.kind = match kind {
            0 => CoordinatorKind::Group,
            1 => CoordinatorKind::Transaction,
            other => return Err(c.wrong("KeyType", Wrong::Value(other.into()))),
        };
        c.texts("CoordinatorKeys", &mut self.keys)?;
        c.end()
    }
}

impl Wire for FindCoordinatorResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.throttle()?;
        c.array("Coordinators", &mut self.coordinators, |c, found| {
            c.text("Key", &mut found.key)?;
            c.i32("NodeId", &mut found.broker.0)?;
            c.maybe_host(&mut found.node)?;
            c.always_i32("Port", if found.node.is_some() { PORT.into() } else { -1 })?;
            c.code(&mut found.error)?;
            c.always_text("ErrorMessage", None)?;
            c.end()
        })?;
        c.end()
    }
}

impl Wire for AddPartitionsToTxnRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.text("V3AndBelowTransactionalId", &mut self.transactional_id)?;
        c.i64("V3AndBelowProducerId", &mut self.producer.0)?;
        c.i16("V3AndBelowProducerEpoch", &mut self.epoch.0)?;
        c.topics(By::Name, &mut self.parts, |part| part, |c, index, _| c.u32("Partitions", index))?;
        c.end()
    }
}

impl Wire for AddPartitionsToTxnResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.throttle()?;
        c.topics(
            By::Name,
            &mut self.parts,
            |part| &mut part.0,
            |c, index, (_, error)| {
                c.u32("PartitionIndex", index)?;
                c.code(error)?;
                c.end()
            },
        )?;
        c.end()
    }
}

impl Wire for EndTxnRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.text("TransactionalId", &mut self.transactional_id)?;
        c.i64("ProducerId", &mut self.producer.0)?;
        c.i16("ProducerEpoch", &mut self.epoch.0)?;
        c.bool("Committed", &mut self.commit)?;
        c.end()
    }
}

impl Wire for EndTxnResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.throttle()?;
        c.code(&mut self.error)?;
        c.i64("ProducerId", &mut self.producer.0)?;
        c.i16("ProducerEpoch", &mut self.epoch.0)?;
        c.end()
    }
}

impl Wire for WriteTxnMarkersRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.array("Markers", &mut self.markers, |c, marker: &mut TxnMarker| {
            c.i64("ProducerId", &mut marker.producer.0)?;
            c.i16("ProducerEpoch", &mut marker.epoch.0)?;
            c.bool("TransactionResult", &mut marker.commit)?;
            c.topics(By::Name, &mut marker.parts, |part| part, |c, index, _| c.u32("PartitionIndexes", index))?;
            c.i32("CoordinatorEpoch", &mut marker.coordinator_epoch)?;
            if c.version >= 2 {
                c.i8("TransactionVersion", &mut marker.version)?;
            }
            c.end()
        })?;
        c.end()
    }
}

impl Wire for WriteTxnMarkersResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.array("Markers", &mut self.markers, |c, marker: &mut TxnMarkerAnswer| {
            c.i64("ProducerId", &mut marker.producer.0)?;
            c.topics(
                By::Name,
                &mut marker.parts,
                |part| &mut part.0,
                |c, index, (_, error)| {
                    c.u32("PartitionIndex", index)?;
                    c.code(error)?;
                    c.end()
                },
            )?;
            c.end()
        })?;
        c.end()
    }
}
