//! Frames: the length, the header, the body; and the table of all messages.

use crate::wire::codec::coder::{Coder, DecodeError, Done, Wire, Wrong};
use crate::wire::codec::directory::Directory;
use crate::wire::messages::{Body, Message};
use crate::wire::size::{api, Api};
use bytes::{BufMut, Bytes, BytesMut};
use std::sync::Arc;

/// The client id in every request header.
pub const CLIENT_ID: &str = "mirrorlab";

macro_rules! table {
    ($( $key:literal $(if $version:pat)? => $request:ident, $response:ident; )*) => {
        /// An empty message of an API. Two share a key: the metadata log is fetched in another version than all others.
        fn blank(api: Api, request: bool) -> Option<Body> {
            use crate::wire::messages as m;
            let blank = match (api.key, api.version) {
                $( ($key, table!(@version $($version)?)) if request => m::$request::default().into(),
                   ($key, table!(@version $($version)?)) => m::$response::default().into(), )*
                _ => return None,
            };
            Some(blank)
        }
        fn pass_body(body: &mut Body, c: &mut Coder<'_>) -> Done {
            match body {
                $( Body::$request(body) => body.pass(c), Body::$response(body) => body.pass(c), )*
            }
        }
    };
    (@version) => { _ };
    (@version $version:pat) => { $version };
}

table! {
    0 => ProduceRequest, ProduceResponse;
    1 if 19 => FetchRequest, FetchResponse;
    1 if 18 => RaftFetchRequest, RaftFetchResponse;
    2 => ListOffsetsRequest, ListOffsetsResponse;
    3 => MetadataRequest, MetadataResponse;
    8 => OffsetCommitRequest, OffsetCommitResponse;
    9 => OffsetFetchRequest, OffsetFetchResponse;
    10 => FindCoordinatorRequest, FindCoordinatorResponse;
    19 => CreateTopicsRequest, CreateTopicsResponse;
    20 => DeleteTopicsRequest, DeleteTopicsResponse;
    21 => DeleteRecordsRequest, DeleteRecordsResponse;
    22 => InitProducerIdRequest, InitProducerIdResponse;
    23 => OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse;
    24 => AddPartitionsToTxnRequest, AddPartitionsToTxnResponse;
    26 => EndTxnRequest, EndTxnResponse;
    27 => WriteTxnMarkersRequest, WriteTxnMarkersResponse;
    37 => CreatePartitionsRequest, CreatePartitionsResponse;
    43 => ElectLeadersRequest, ElectLeadersResponse;
    44 => IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse;
    52 => VoteRequest, VoteResponse;
    53 => BeginQuorumEpochRequest, BeginQuorumEpochResponse;
    54 => EndQuorumEpochRequest, EndQuorumEpochResponse;
    56 => AlterPartitionRequest, AlterPartitionResponse;
    59 => FetchSnapshotRequest, FetchSnapshotResponse;
    62 => BrokerRegistrationRequest, BrokerRegistrationResponse;
    63 => BrokerHeartbeatRequest, BrokerHeartbeatResponse;
    67 => AllocateProducerIdsRequest, AllocateProducerIdsResponse;
    94 => CreateClusterMirrorRequest, CreateClusterMirrorResponse;
    95 => StartMirrorTopicsRequest, StartMirrorTopicsResponse;
    96 => StopMirrorTopicsRequest, StopMirrorTopicsResponse;
    98 => ListClusterMirrorsRequest, ListClusterMirrorsResponse;
    99 => DescribeClusterMirrorsRequest, DescribeClusterMirrorsResponse;
    100 => ReadMirrorStatesRequest, ReadMirrorStatesResponse;
    101 => WriteMirrorStatesRequest, WriteMirrorStatesResponse;
    102 => PauseMirrorTopicsRequest, PauseMirrorTopicsResponse;
    103 => ResumeMirrorTopicsRequest, ResumeMirrorTopicsResponse;
    104 => DeleteClusterMirrorRequest, DeleteClusterMirrorResponse;
    105 => BumpLeaderEpochsRequest, BumpLeaderEpochsResponse;
    106 => ReadMirrorOffsetsRequest, ReadMirrorOffsetsResponse;
    107 => RecoverMirrorTopicsRequest, RecoverMirrorTopicsResponse;
}

// ----------------------------------------------------------------------------------------------------------------- writing

/// A message as a frame, with the fields of our own: what comes back is equal.
#[must_use]
pub fn encode(message: &Message, dir: &dyn Directory) -> Bytes {
    write(message, Coder::writer(dir, true))
}

/// A message as a frame of Kafka's fields only: what another implementation writes, and what links are charged for.
#[must_use]
pub fn encode_stock(message: &Message, dir: &dyn Directory) -> Bytes {
    write(message, Coder::writer(dir, false))
}

fn write(message: &Message, mut c: Coder<'_>) -> Bytes {
    // Passing wants to change what it passes, for the sake of reading. Batches are shared, so that a copy is cheap.
    let mut copy = message.clone();
    let api = api(&copy.body);
    c.version = api.version;
    let written = if copy.body.is_request() {
        request_header(&mut c, &mut { api }, &mut copy.correlation)
    } else {
        response_header(&mut c, &mut copy.correlation)
    };
    let written = written.and_then(|()| pass_body(&mut copy.body, &mut c));
    debug_assert!(written.is_ok(), "writing {}: {written:?}", message.body.name());
    let rest = c.into_bytes();
    let mut frame = BytesMut::with_capacity(4 + rest.len());
    frame.put_u32(rest.len() as u32);
    frame.put_slice(&rest);
    frame.freeze()
}

// ----------------------------------------------------------------------------------------------------------------- reading

/// A request from its frame.
///
/// # Errors
/// The bytes are not one whole frame of a request that is known here.
pub fn decode_request(frame: &Bytes, dir: &dyn Directory) -> Result<Message, DecodeError> {
    let mut c = Coder::reader(frame, dir);
    let mut asked = Api { key: 0, version: 0 };
    let mut correlation = 0;
    length(&mut c)?;
    request_header(&mut c, &mut asked, &mut correlation)?;
    body(&mut c, asked, true, correlation)
}

/// A response from its frame. It does not say what it answers: `asked` is the API of the request with its correlation id.
///
/// # Errors
/// The bytes are not one whole frame of such a response.
pub fn decode_response(frame: &Bytes, asked: Api, dir: &dyn Directory) -> Result<Message, DecodeError> {
    let mut c = Coder::reader(frame, dir);
    let mut correlation = 0;
    length(&mut c)?;
    response_header(&mut c, &mut correlation)?;
    body(&mut c, asked, false, correlation)
}

fn length(c: &mut Coder<'_>) -> Done {
    let mut len = 0;
    c.i32("length", &mut len)?;
    if usize::try_from(len) == Ok(c.left()) {
        Ok(())
    } else {
        Err(c.wrong("length", Wrong::Value(len.into())))
    }
}

fn body(c: &mut Coder<'_>, asked: Api, request: bool, correlation: u32) -> Result<Message, DecodeError> {
    let unknown = c.wrong("api", Wrong::Api(asked.key, asked.version));
    let mut body = blank(asked, request).ok_or(unknown)?;
    let known = api(&body);
    // Topics with a mirror's id are created by one version more, and so are markers written that name their transaction
    // version; the answer to it is the same.
    let extended = matches!(known.key, 19 | 27) && asked.version == known.version + 1;
    if known.version != asked.version && !extended {
        return Err(unknown);
    }
    c.version = asked.version;
    pass_body(&mut body, c)?;
    c.finish("message")?;
    Ok(Message { correlation, body })
}

// ----------------------------------------------------------------------------------------------------------------- headers

/// Request header v2: the client id is of the older kind in every version.
fn request_header(c: &mut Coder<'_>, api: &mut Api, correlation: &mut u32) -> Done {
    c.i16("RequestApiKey", &mut api.key)?;
    c.i16("RequestApiVersion", &mut api.version)?;
    c.u32("CorrelationId", correlation)?;
    c.legacy_text("ClientId", &mut Some(Arc::from(CLIENT_ID)))?;
    c.end()
}

/// Response header v1.
fn response_header(c: &mut Coder<'_>, correlation: &mut u32) -> Done {
    c.u32("CorrelationId", correlation)?;
    c.end()
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
