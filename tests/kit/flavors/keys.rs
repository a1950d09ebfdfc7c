//! The flavor `CosmosDb` stores the keys of an entity among its properties. Everything that shows
//! an entity shows each key once.

use std::io;

use tablesdk_server::TableServer;
use tablesdk_server::testing::Flavor;

use super::{Subject, outcome};

const ENTITY: &str = "/People(PartitionKey='p',RowKey='k')";

/// Asserts that a response has the entity, with each key once.
fn assert_once(shown: &str) {
    for key in [r#""PartitionKey":"p""#, r#""RowKey":"k""#] {
        assert_eq!(shown.matches(key).count(), 1, "{key}: {shown}");
    }
    assert_eq!(shown.matches("Key\":").count(), 2, "{shown}");
}

#[tokio::test]
async fn each_key_is_shown_once() {
    let subject = Subject::with(Flavor::CosmosDb).await;
    let delete = subject.send(
        "DELETE /People(PartitionKey='p',RowKey='r')",
        &["If-Match: *"],
        "",
    );
    assert_eq!(outcome(&delete.await), "204");
    for (line, body) in [
        (format!("PUT {ENTITY}"), r#"{"A":1}"#),
        (format!("PUT {ENTITY}"), r#"{"A":1,"RowKey":null}"#),
        (
            format!("PUT {ENTITY}"),
            r#"{"PartitionKey":"other","A":1,"RowKey":"another"}"#,
        ),
        (format!("MERGE {ENTITY}"), r#"{"RowKey":"another","B":2}"#),
        (format!("MERGE {ENTITY}"), "{}"),
    ] {
        let written = subject.send(&line, &[], body).await;
        assert_eq!(outcome(&written), "204", "{line} {body}");
        for level in ["nometadata", "minimalmetadata", "fullmetadata"] {
            let accept = format!("Accept: application/json;odata={level}");
            for line in ["GET /People()", &format!("GET {ENTITY}")] {
                assert_once(&subject.send(line, &[&accept], "").await.body);
            }
        }
        let select = format!("GET {ENTITY}?$select=PartitionKey,RowKey,A");
        assert_once(&subject.send(&select, &[], "").await.body);
        let filter = "GET /People()?$filter=PartitionKey%20eq%20'p'%20and%20RowKey%20ge%20'k'";
        assert_once(&subject.send(filter, &[], "").await.body);
    }

    let server = subject.server.as_ref().unwrap();
    let dump = server.dump().unwrap();
    assert_eq!(dump.matches("Key").count(), 2, "{dump}");
    let saved = server.save().unwrap();
    for flavor in [Flavor::CosmosDb, Flavor::Storage] {
        let other = TableServer::builder().flavor(flavor).in_process().unwrap();
        other.load(&saved).await.unwrap();
        assert_eq!(other.dump().unwrap(), dump, "{flavor:?}");
        let restored = other.restore(&server.snapshot().unwrap());
        match flavor {
            Flavor::CosmosDb => restored.unwrap(),
            _ => assert_eq!(restored.unwrap_err().kind(), io::ErrorKind::InvalidInput),
        }
        assert_eq!(other.dump().unwrap(), dump, "{flavor:?}");
    }
    let mut backup = Vec::new();
    let error = server.backup(&mut backup).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::Unsupported);
}
