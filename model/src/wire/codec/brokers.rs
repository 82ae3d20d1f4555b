//! Brokers and their controller: BrokerRegistration (4), BrokerHeartbeat (1), AlterPartition (3), AllocateProducerIds (0); and
//! InitProducerId (4), for which the ids are allocated.

use crate::wire::codec::coder::{Coder, Done, Wire, Wrong};
use crate::wire::codec::directory::PORT;
use crate::wire::codec::tags::{self, Tag};
use crate::wire::codec::topics::By;
use crate::wire::messages::{
    AllocateProducerIdsRequest, AllocateProducerIdsResponse, AlterPartitionRequest, AlterPartitionResponse,
    BrokerHeartbeatRequest, BrokerHeartbeatResponse, BrokerRegistrationRequest, BrokerRegistrationResponse,
    InitProducerIdRequest, InitProducerIdResponse,
};
use crate::wire::size::{FEATURES, LISTENER};
use std::sync::Arc;

impl Wire for BrokerRegistrationRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.i32("BrokerId", &mut self.broker.0)?;
        c.text("ClusterId", &mut self.cluster_id)?;
        c.uuid("IncarnationId", &mut self.incarnation)?;
        let mut listeners = vec![self.node];
        c.array("Listeners", &mut listeners, |c, node| {
            c.always_text("Name", Some(LISTENER))?;
            c.host(node)?;
            c.always_i16("Port", PORT as i16)?;
            c.always_i16("SecurityProtocol", 0)?;
            c.end()
        })?;
        let [listener] = listeners[..] else { return Err(c.wrong("Listeners", Wrong::Value(listeners.len() as i64))) };
        self.node = listener;
        let mut features = FEATURES.map(Arc::from).to_vec();
        c.array("Features", &mut features, |c, name| {
            c.text("Name", name)?;
            c.always_i16("MinSupportedVersion", 0)?;
            c.always_i16("MaxSupportedVersion", 1)?;
            c.end()
        })?;
        c.always_text("Rack", None)?;
        c.always_bool("IsMigratingZkBroker", false)?;
        // One disk: its directory id is the process's, which is new with every start; nothing asks for more.
        let mut directories = vec![self.incarnation];
        c.array("LogDirs", &mut directories, |c, id| c.uuid("LogDirs", id))?;
        c.i64("PreviousBrokerEpoch", &mut self.previous_epoch.0)?;
        c.end()
    }
}

impl Wire for BrokerRegistrationResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.throttle()?;
        c.code(&mut self.error)?;
        c.i64("BrokerEpoch", &mut self.epoch.0)?;
        let told = self.incarnation != 0;
        c.tags(&mut [Tag::new(tags::INCARNATION, told, &mut |c| c.uuid("Incarnation", &mut self.incarnation))])
    }
}

impl Wire for BrokerHeartbeatRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.i32("BrokerId", &mut self.broker.0)?;
        c.i64("BrokerEpoch", &mut self.epoch.0)?;
        c.i64("CurrentMetadataOffset", &mut self.metadata_offset.0)?;
        c.bool("WantFence", &mut self.want_fence)?;
        c.bool("WantShutDown", &mut self.want_shutdown)?;
        c.end()
    }
}

impl Wire for BrokerHeartbeatResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.throttle()?;
        c.code(&mut self.error)?;
        // A fenced broker is let in when it has caught up; nobody here asks which of the two it was.
        c.always_bool("IsCaughtUp", false)?;
        c.bool("IsFenced", &mut self.fenced)?;
        c.bool("ShouldShutDown", &mut self.may_shutdown)?;
        c.end()
    }
}

impl Wire for AlterPartitionRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.i32("BrokerId", &mut self.broker.0)?;
        c.i64("BrokerEpoch", &mut self.broker_epoch.0)?;
        c.topics(
            By::Id,
            &mut self.parts,
            |part| &mut part.partition,
            |c, index, part| {
                c.u32("PartitionIndex", index)?;
                c.i32("LeaderEpoch", &mut part.leader_epoch.0)?;
                let mut isr = part.isr.to_vec();
                c.array("NewIsrWithEpochs", &mut isr, |c, (id, epoch)| {
                    c.i32("BrokerId", &mut id.0)?;
                    c.i64("BrokerEpoch", &mut epoch.0)?;
                    c.end()
                })?;
                c.preset(&mut part.isr, isr.into());
                // In Kafka every proposal says RECOVERED (0), and the first one after an unclean election is the report; here
                // only that one says so.
                let mut state = 0;
                c.i8("LeaderRecoveryState", &mut state)?;
                c.i32("PartitionEpoch", &mut part.partition_epoch.0)?;
                c.preset(&mut part.recovered, state == 0);
                let silent = !part.recovered;
                c.tags(&mut [Tag::new(tags::REPORTS, silent, &mut |c| c.bool("Reports", &mut part.recovered))])
            },
        )?;
        c.end()
    }
}

impl Wire for AlterPartitionResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.throttle()?;
        c.code(&mut self.error)?;
        c.topics(
            By::Id,
            &mut self.parts,
            |part| &mut part.partition,
            |c, index, part| {
                c.u32("PartitionIndex", index)?;
                c.code(&mut part.error)?;
                c.i32("LeaderId", &mut part.leader.0)?;
                c.i32("LeaderEpoch", &mut part.leader_epoch.0)?;
                c.broker_ids("Isr", &mut part.isr)?;
                c.always_i8("LeaderRecoveryState", 0)?;
                c.i32("PartitionEpoch", &mut part.partition_epoch.0)?;
                c.end()
            },
        )?;
        c.end()
    }
}

impl Wire for AllocateProducerIdsRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.i32("BrokerId", &mut self.broker.0)?;
        c.i64("BrokerEpoch", &mut self.broker_epoch.0)?;
        c.end()
    }
}

impl Wire for AllocateProducerIdsResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.throttle()?;
        c.code(&mut self.error)?;
        c.i64("ProducerIdStart", &mut self.first.0)?;
        c.u32("ProducerIdLen", &mut self.count)?;
        c.end()
    }
}

impl Wire for InitProducerIdRequest {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.nullable("TransactionalId", &mut self.transactional_id)?;
        c.u32("TransactionTimeoutMs", &mut self.timeout_ms)?;
        c.i64("ProducerId", &mut self.producer.0)?;
        c.i16("ProducerEpoch", &mut self.epoch.0)?;
        c.end()
    }
}

impl Wire for InitProducerIdResponse {
    fn pass(&mut self, c: &mut Coder<'_>) -> Done {
        c.throttle()?;
        c.code(&mut self.error)?;
        c.i64("ProducerId", &mut self.producer.0)?;
        c.i16("ProducerEpoch", &mut self.epoch.0)?;
        c.end()
    }
}
