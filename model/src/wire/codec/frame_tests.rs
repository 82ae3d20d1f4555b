use super::*;

/// Every message has a row in the table, under the key and version that it is sent as.
#[test]
fn the_table_knows_every_message() {
    let mut names = Vec::new();
    for key in 0..200 {
        for version in 0..30 {
            for request in [true, false] {
                let Some(body) = blank(Api { key, version }, request) else { continue };
                assert_eq!(body.is_request(), request);
                assert_eq!(api(&body).key, key);
                if api(&body).version == version {
                    names.push(body.name());
                }
            }
        }
    }
    names.sort_unstable();
    let mut all = Body::NAMES.to_vec();
    all.sort_unstable();
    assert_eq!(names, all);
}

#[test]
fn the_client_id_has_the_length_that_sizes_assume() {
    assert_eq!(CLIENT_ID.len(), crate::wire::size::CLIENT_ID_LEN);
}
