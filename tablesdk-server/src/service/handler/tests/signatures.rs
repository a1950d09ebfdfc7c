//! Shared access signatures: every row of the service's tables of permissions and of refusals, and what is left behind.

use proptest::prelude::*;
use tablesdk_protocol::auth::sas::SignedSas;

use super::*;
use crate::request::connection::Peer;

const UNTIL: &str = "se=2024-03-15T11:00:00Z";

/// Signs the fields of a signature with the account's key.
pub(super) fn signed(client: &Client, fields: &str) -> String {
    let unsigned = SignedSas::parse(&format!("{fields}&sig=x")).unwrap();
    let sas = unsigned.into_sas().sign(&client.key);
    sas.expose().as_str().to_owned()
}

fn account_sas(client: &Client, srt: &str, sp: &str) -> String {
    signed(
        client,
        &format!("sv=2019-02-02&ss=t&srt={srt}&sp={sp}&{UNTIL}"),
    )
}

fn table_sas(client: &Client, fields: &str) -> String {
    signed(client, &format!("sv=2019-02-02&tn=people&{fields}"))
}

/// Sends a request with a signature in its URL.
fn send(
    client: &Client,
    sas: &str,
    (method, resource, headers, content): (&str, &str, &[(&str, &str)], &str),
) -> Response<Bytes> {
    let separator = if resource.contains('?') { '&' } else { '?' };
    let path = format!("/acct/{resource}{separator}{sas}");
    client.call(client.request(method, &path, headers, content))
}

/// The keys of all entities, as the account sees them.
fn keys(client: &Client) -> String {
    let response = client.send("GET", "people()?$select=PartitionKey,RowKey", &[], "");
    let mut keys = String::new();
    for entity in body(&response).split(r#"{"PartitionKey":""#).skip(1) {
        let mut texts = entity.split('"');
        let (partition, row) = (texts.next().unwrap(), texts.nth(3).unwrap());
        keys.extend([partition, row, " "]);
    }
    keys
}

/// A table with the entities B1, B2, C1, D1 and D2.
fn with_entities() -> Client {
    let client = Client::with_table();
    for key in ["B1", "B2", "C1", "D1", "D2"] {
        let (partition, row) = key.split_at(1);
        let entity = format!(r#"{{"PartitionKey":"{partition}","RowKey":"{row}"}}"#);
        assert_eq!(client.send("POST", "people", &[], &entity).status(), 201);
    }
    client
}

type Call<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a str);

const ANY: &[(&str, &str)] = &[("if-match", "*")];
const QUERY: Call<'_> = ("GET", "people()", &[], "");
const POINT: Call<'_> = ("GET", "people(PartitionKey='C',RowKey='1')", &[], "");
const INSERT: Call<'_> = (
    "POST",
    "people",
    &[],
    r#"{"PartitionKey":"C","RowKey":"9"}"#,
);
const UPDATE: Call<'_> = (
    "PUT",
    "people(PartitionKey='C',RowKey='1')",
    ANY,
    r#"{"a":1}"#,
);
const MERGE: Call<'_> = (
    "MERGE",
    "people(PartitionKey='C',RowKey='1')",
    ANY,
    r#"{"a":1}"#,
);
const UPSERT: Call<'_> = (
    "PUT",
    "people(PartitionKey='C',RowKey='8')",
    &[],
    r#"{"a":1}"#,
);
const DELETE: Call<'_> = ("DELETE", "people(PartitionKey='C',RowKey='1')", ANY, "");
const QUERY_TABLES: Call<'_> = ("GET", "Tables", &[], "");
const GET_TABLE: Call<'_> = ("GET", "Tables('people')", &[], "");
const CREATE_TABLE: Call<'_> = ("POST", "Tables", &[], r#"{"TableName":"more"}"#);
const DELETE_TABLE: Call<'_> = ("DELETE", "Tables('people')", &[], "");
const GET_PROPERTIES: Call<'_> = ("GET", "?restype=service&comp=properties", &[], "");
const SET_PROPERTIES: Call<'_> = (
    "PUT",
    "?restype=service&comp=properties",
    &[],
    "<StorageServiceProperties />",
);
const GET_ACL: Call<'_> = ("GET", "people?comp=acl", &[], "");
const SET_ACL: Call<'_> = ("PUT", "people?comp=acl", &[], "<SignedIdentifiers />");

#[test]
fn an_account_sas_needs_resource_type_and_permission() {
    for (call, types, needs, status) in [
        (GET_PROPERTIES, "s", &["r"][..], 200),
        (SET_PROPERTIES, "s", &["w"], 202),
        (QUERY_TABLES, "cs", &["l"], 200),
        (GET_TABLE, "cs", &["l"], 200),
        (CREATE_TABLE, "c", &["c", "w"], 201),
        (DELETE_TABLE, "c", &["d"], 204),
        (QUERY, "o", &["r"], 200),
        (POINT, "o", &["r"], 200),
        (INSERT, "o", &["a"], 201),
        (UPSERT, "o", &["au"], 204),
        (UPDATE, "o", &["u"], 204),
        (MERGE, "o", &["u"], 204),
        (DELETE, "o", &["d"], 204),
        (GET_ACL, "", &[], 0),
        (SET_ACL, "", &[], 0),
    ] {
        for srt in ["s", "c", "o", "sco"] {
            for sp in ["r", "w", "d", "l", "a", "c", "u", "au", "rwdlacu"] {
                let client = with_entities();
                let before = keys(&client);
                let has_type = srt.chars().any(|letter| types.contains(letter));
                let has = |need: &&str| need.chars().all(|letter| sp.contains(letter));
                let expected = match (types, has_type, needs.iter().any(has)) {
                    ("", ..) => (403, "AuthorizationFailure"),
                    (_, false, _) => (403, "AuthorizationResourceTypeMismatch"),
                    (_, _, false) => (403, "AuthorizationPermissionMismatch"),
                    (_, true, true) => (status, ""),
                };
                let sas = account_sas(&client, srt, sp);
                let response = send(&client, &sas, call);
                let what = format!("{} {} with {srt} {sp}", call.0, call.1);
                assert_eq!(status_and_code(&response), expected, "{what}");
                if expected.0 == 403 {
                    assert_eq!(keys(&client), before, "{what}");
                }
            }
        }
    }
}

/// What a request is answered before its body, of which the head announces that many bytes, is read.
fn refused_by_head(
    client: &Client,
    sas: &str,
    call: Call<'_>,
    length: &str,
) -> Option<(u16, String)> {
    let (method, resource, headers, _) = call;
    let separator = if resource.contains('?') { '&' } else { '?' };
    let path = format!("/acct/{resource}{separator}{sas}");
    let headers = [headers, &[("content-length", length)]].concat();
    let (head, _) = client.request(method, &path, &headers, "").into_parts();
    let response = client.service.admit(head).err()?;
    let (status, code) = status_and_code(&response);
    Some((status, code.to_owned()))
}

#[test]
fn a_large_body_is_refused_by_its_head_exactly_where_it_would_be_when_read() {
    let tunnelled = (
        "POST",
        MERGE.1,
        &[("if-match", "*"), ("x-http-method", "MERGE")][..],
        MERGE.3,
    );
    let calls = [
        INSERT,
        UPDATE,
        MERGE,
        tunnelled,
        UPSERT,
        CREATE_TABLE,
        SET_PROPERTIES,
        SET_ACL,
    ];
    let client = with_entities();
    client.send("POST", "Tables", &[], r#"{"TableName":"other"}"#);
    let mut sas = vec![table_sas(&client, &format!("sp=raud&spk=D&epk=E&{UNTIL}"))];
    for sp in ["r", "a", "u", "au", "raud"] {
        sas.push(table_sas(&client, &format!("sp={sp}&{UNTIL}")));
        sas.push(signed(
            &client,
            &format!("sv=2019-02-02&tn=other&sp={sp}&{UNTIL}"),
        ));
    }
    for srt in ["s", "c", "o", "sco"] {
        for sp in ["r", "w", "a", "c", "u", "au", "rwdlacu"] {
            sas.push(account_sas(&client, srt, sp));
        }
    }
    let mut refusals = 0;
    for sas in &sas {
        for call in calls {
            let client = with_entities();
            let read = send(&client, sas, call);
            let read = status_and_code(&read);
            let read = (read.0 == 403).then(|| (read.0, read.1.to_owned()));
            // The keys of an insert are in its body.
            let is_by_key = call == INSERT && sas.contains("spk=");
            let expected = read.filter(|_| !is_by_key);
            let what = format!("{} {} with {sas}", call.0, call.1);
            refusals += usize::from(expected.is_some());
            assert_eq!(
                refused_by_head(&client, sas, call, "4194304"),
                expected,
                "{what}"
            );
            // The connection of a small one can go on.
            assert_eq!(refused_by_head(&client, sas, call, "99"), None, "{what}");
        }
    }
    assert!(refusals > 100, "{refusals}");
}

#[test]
fn a_table_sas_is_good_for_the_entities_of_its_table() {
    for (call, needs, status) in [
        (QUERY, "r", 200),
        (POINT, "r", 200),
        (INSERT, "a", 201),
        (UPSERT, "au", 204),
        (UPDATE, "u", 204),
        (MERGE, "u", 204),
        (DELETE, "d", 204),
    ] {
        for sp in ["r", "a", "u", "d", "au", "raud"] {
            let client = with_entities();
            let before = keys(&client);
            let sas = table_sas(&client, &format!("sp={sp}&{UNTIL}"));
            let has_all = needs.chars().all(|letter| sp.contains(letter));
            let expected = if has_all {
                (status, "")
            } else {
                (403, "AuthorizationPermissionMismatch")
            };
            let response = send(&client, &sas, call);
            assert_eq!(status_and_code(&response), expected, "{call:?} {sp}");
            assert_eq!(
                keys(&client) == before,
                !has_all || ["r", "u"].contains(&needs)
            );
        }
    }
    let client = with_entities();
    client.send("POST", "Tables", &[], r#"{"TableName":"other"}"#);
    let before = keys(&client);
    let sas = table_sas(&client, &format!("sp=raud&{UNTIL}"));
    let failure = (403, "AuthorizationFailure");
    for call in [
        QUERY_TABLES,
        GET_TABLE,
        CREATE_TABLE,
        DELETE_TABLE,
        GET_PROPERTIES,
        SET_PROPERTIES,
        GET_ACL,
        SET_ACL,
        ("GET", "other()", &[], ""),
        ("GET", "other(PartitionKey='C',RowKey='1')", &[], ""),
        ("POST", "other", &[], r#"{"PartitionKey":"C","RowKey":"9"}"#),
        ("PUT", "other(PartitionKey='C',RowKey='1')", &[], "{}"),
    ] {
        assert_eq!(
            status_and_code(&send(&client, &sas, call)),
            failure,
            "{call:?}"
        );
    }
    assert_eq!(keys(&client), before);
    // Case is no matter, neither in the URL nor in the signature.
    let upper = sas.replace("tn=people", "tn=PEOPLE");
    let call = ("GET", "pEOPLE()", &[][..], "");
    assert_eq!(send(&client, &upper, call).status(), 200);
}

#[test]
fn keys_out_of_range_are_not_seen_and_not_written() {
    let client = with_entities();
    let range = format!("sp=raud&{UNTIL}&spk=B&srk=2&epk=D&erk=1");
    let sas = table_sas(&client, &range);
    let seen = |sas: &str, options: &str| {
        let resource = format!("people()?$select=PartitionKey,RowKey{options}");
        let response = send(&client, sas, ("GET", &resource, &[], ""));
        assert_eq!(response.status(), 200);
        let next = header(&response, "x-ms-continuation-nextpartitionkey").is_some();
        let count = body(&response).matches("PartitionKey").count();
        (count, next)
    };
    assert_eq!(seen(&sas, ""), (3, false));
    assert_eq!(seen(&sas, "&$top=2"), (2, true));
    assert_eq!(seen(&sas, "&$top=3"), (3, false));
    assert_eq!(seen(&sas, "&$filter=PartitionKey%20eq%20'D'"), (1, false));
    assert_eq!(
        seen(&sas, "&$filter=not%20(PartitionKey%20eq%20'C')"),
        (2, false)
    );
    // A continuation cannot lead out of the range either.
    assert_eq!(seen(&sas, "&NextPartitionKey=1!4!QQ--"), (3, false));
    assert_eq!(seen(&sas, "&NextPartitionKey=1!4!RQ--"), (0, false));
    for (fields, count) in [
        ("spk=C", 3),
        ("epk=C", 3),
        ("spk=C&epk=C", 1),
        ("spk=B&srk=2", 4),
        ("epk=B&erk=1", 1),
        ("spk=E", 0),
        ("spk=D&epk=B", 0),
    ] {
        let sas = table_sas(&client, &format!("sp=r&{UNTIL}&{fields}"));
        assert_eq!(seen(&sas, ""), (count, false), "{fields}");
    }

    let before = keys(&client);
    for (key, is_in) in [
        ("B1", false),
        ("B2", true),
        ("C1", true),
        ("D1", true),
        ("D2", false),
    ] {
        let (partition, row) = key.split_at(1);
        let point = format!("people(PartitionKey='{partition}',RowKey='{row}')");
        let response = send(&client, &sas, ("GET", &point, &[], ""));
        let expected = if is_in {
            (200, "")
        } else {
            (404, "ResourceNotFound")
        };
        assert_eq!(status_and_code(&response), expected, "{key}");
        let entity = format!(r#"{{"PartitionKey":"{partition}","RowKey":"{row}"}}"#);
        for (call, status, code) in [
            (
                ("POST", "people", &[][..], &*entity),
                409,
                "EntityAlreadyExists",
            ),
            (("PUT", &*point, ANY, "{}"), 204, ""),
            (("PUT", &*point, &[], "{}"), 204, ""),
            (("MERGE", &*point, &[], "{}"), 204, ""),
        ] {
            let expected = if is_in {
                (status, code)
            } else {
                (403, "AuthorizationFailure")
            };
            let response = send(&client, &sas, call);
            assert_eq!(status_and_code(&response), expected, "{key} {call:?}");
        }
        if !is_in {
            let response = send(&client, &sas, ("DELETE", &point, ANY, ""));
            assert_eq!(status_and_code(&response), (403, "AuthorizationFailure"));
        }
    }
    assert_eq!(keys(&client), before);
    let outside = r#"{"PartitionKey":"A","RowKey":"1"}"#;
    let response = send(&client, &sas, ("POST", "people", &[], outside));
    assert_eq!(status_and_code(&response), (403, "AuthorizationFailure"));
    let point = "people(PartitionKey='B',RowKey='2')";
    assert_eq!(
        send(&client, &sas, ("DELETE", point, ANY, "")).status(),
        204
    );
    assert_eq!(keys(&client), before.replace("B2 ", ""));
}

#[test]
fn a_stored_policy_completes_what_names_it() {
    let client = with_entities();
    let set = |policy: &str| {
        let document = format!(
            "<SignedIdentifiers><SignedIdentifier><Id>one</Id><AccessPolicy>{policy}</AccessPolicy></SignedIdentifier></SignedIdentifiers>"
        );
        let response = client.send("PUT", "people?comp=acl", &[], &document);
        assert_eq!(response.status(), 204);
    };
    let expiry = "<Expiry>2024-03-15T11:00:00Z</Expiry>";
    let read = "<Permission>r</Permission>";
    let failed = (403, "AuthenticationFailed");
    for (policy, fields, expected) in [
        (format!("{expiry}{read}"), "si=one".to_owned(), (200, "")),
        (read.to_owned(), format!("si=one&{UNTIL}"), (200, "")),
        (expiry.to_owned(), "si=one&sp=r".to_owned(), (200, "")),
        (String::new(), format!("si=one&sp=r&{UNTIL}"), (200, "")),
        (
            format!("<Start>2024-03-15</Start>{expiry}{read}"),
            "si=one".to_owned(),
            (200, ""),
        ),
        (
            format!("{expiry}<Permission>a</Permission>"),
            "si=one".to_owned(),
            (403, "AuthorizationPermissionMismatch"),
        ),
        // Both say it.
        (format!("{expiry}{read}"), "si=one&sp=r".to_owned(), failed),
        (format!("{expiry}{read}"), format!("si=one&{UNTIL}"), failed),
        (
            format!("<Start>2024-03-15</Start>{expiry}{read}"),
            "si=one&st=2024-03-15".to_owned(),
            failed,
        ),
        // Neither says it.
        (read.to_owned(), "si=one".to_owned(), failed),
        (expiry.to_owned(), "si=one".to_owned(), failed),
        // Not now.
        (
            format!("<Start>2024-03-16</Start>{expiry}{read}"),
            "si=one".to_owned(),
            failed,
        ),
        (
            format!("<Expiry>2024-03-15</Expiry>{read}"),
            "si=one".to_owned(),
            failed,
        ),
        // Unknown.
        (format!("{expiry}{read}"), "si=two".to_owned(), failed),
    ] {
        set(&policy);
        let sas = table_sas(&client, &fields);
        let response = send(&client, &sas, QUERY);
        assert_eq!(status_and_code(&response), expected, "{policy} {fields}");
    }
    // Removing the stored access policy revokes the SAS.
    set(&format!("{expiry}{read}"));
    let sas = table_sas(&client, "si=one");
    assert_eq!(send(&client, &sas, QUERY).status(), 200);
    client.send("PUT", "people?comp=acl", &[], "");
    assert_eq!(status_and_code(&send(&client, &sas, QUERY)), failed);
    client.send("DELETE", "Tables('people')", &[], "");
    assert_eq!(status_and_code(&send(&client, &sas, QUERY)), failed);
}

#[test]
fn a_signature_that_does_not_hold_is_refused() {
    let client = with_entities();
    let account = |fields: &str| signed(&client, &format!("sv=2019-02-02&srt=sco&{fields}"));
    let good = account(&format!("ss=t&sp=r&{UNTIL}"));
    assert_eq!(send(&client, &good, QUERY).status(), 200);
    let failed = (403, "AuthenticationFailed");
    for (sas, expected) in [
        (good.replace("sp=r", "sp=rw"), failed),
        (good.replace("sig=", "sig=A"), failed),
        (good.replace("sig=", "sig=&x="), failed),
        (good.replace("2019-02-02", "2020-12-06"), failed),
        (good.replace("sv=", "vs="), failed),
        (format!("{good}&sp=r"), failed),
        (format!("{good}&spk=B"), failed),
        ("sig=x".to_owned(), failed),
        (account("ss=t&sp=r&se=2024-03-15T10:20:30Z"), failed),
        (
            account(&format!("ss=t&sp=r&st=2024-03-15T10:20:31Z&{UNTIL}")),
            failed,
        ),
        (
            account(&format!("ss=t&sp=r&st=2024-03-15T10:20:30Z&{UNTIL}")),
            (200, ""),
        ),
        (account("ss=t&sp=r&se=2024-03-15T10:20:31Z"), (200, "")),
        (
            account(&format!("ss=bqf&sp=r&{UNTIL}")),
            (403, "AuthorizationServiceMismatch"),
        ),
        (account(&format!("ss=bqtf&sp=r&{UNTIL}")), (200, "")),
        (
            account(&format!("ss=t&sp=r&spr=https&{UNTIL}")),
            (403, "AuthorizationProtocolMismatch"),
        ),
        (
            account(&format!("ss=t&sp=r&spr=https,http&{UNTIL}")),
            (200, ""),
        ),
        (
            account(&format!("ss=t&sp=r&sip=192.0.2.7&{UNTIL}")),
            (403, "AuthorizationSourceIPMismatch"),
        ),
        (
            table_sas(&client, &format!("sp=r&sip=192.0.2.7&{UNTIL}")),
            (403, "AuthorizationSourceIPMismatch"),
        ),
        (
            table_sas(&client, &format!("sp=r&spr=https&{UNTIL}")),
            (403, "AuthorizationProtocolMismatch"),
        ),
        // The order of the checks: time, address, protocol, service, type, permission.
        (
            account("ss=b&sp=w&sip=1.1.1.1&spr=https&se=2024-03-15"),
            failed,
        ),
        (
            account(&format!("ss=b&sp=w&sip=1.1.1.1&spr=https&{UNTIL}")),
            (403, "AuthorizationSourceIPMismatch"),
        ),
        (
            account(&format!("ss=b&sp=w&spr=https&{UNTIL}")),
            (403, "AuthorizationProtocolMismatch"),
        ),
        (
            account(&format!("ss=b&sp=w&{UNTIL}")),
            (403, "AuthorizationServiceMismatch"),
        ),
        (
            signed(&client, &format!("sv=2019-02-02&ss=t&srt=s&sp=w&{UNTIL}")),
            (403, "AuthorizationResourceTypeMismatch"),
        ),
        (
            account(&format!("ss=t&sp=w&{UNTIL}")),
            (403, "AuthorizationPermissionMismatch"),
        ),
    ] {
        let response = send(&client, &sas, QUERY);
        assert_eq!(status_and_code(&response), expected, "{sas}");
        assert!(!body(&response).contains("sig="), "{sas}");
    }
    // Another account's key.
    let path = format!("/second/Tables?{good}");
    let response = client.call(client.request("GET", &path, &[], ""));
    assert_eq!(status_and_code(&response), failed);
    // The account's other key.
    let mut other = with_entities();
    other.key = SharedKey::new("acct", "b3RoZXI=").unwrap();
    let sas = account_sas(&other, "o", "r");
    assert_eq!(send(&other, &sas, QUERY).status(), 200);
    // It expires.
    client.advance(3600);
    assert_eq!(status_and_code(&send(&client, &good, QUERY)), failed);
}

#[test]
fn the_address_of_the_client_counts() {
    let client = with_entities();
    let sas = table_sas(&client, &format!("sp=r&{UNTIL}&sip=192.0.2.1-192.0.2.9"));
    for (peer, expected) in [
        ("192.0.2.7", (200, "")),
        ("::ffff:192.0.2.7", (200, "")),
        ("192.0.2.10", (403, "AuthorizationSourceIPMismatch")),
        ("::1", (403, "AuthorizationSourceIPMismatch")),
    ] {
        let mut request = client.request("GET", &format!("/acct/people()?{sas}"), &[], "");
        request.extensions_mut().insert(Peer(peer.parse().unwrap()));
        assert_eq!(status_and_code(&client.call(request)), expected, "{peer}");
    }
}

#[test]
fn a_header_wins_over_a_signature_in_the_url() {
    let client = with_entities();
    let useless = table_sas(&client, "sp=r&se=2020-01-01");
    let response = client.send("GET", &format!("Tables?{useless}"), &[], "");
    assert_eq!(response.status(), 200);
    // The header's refusal is the response where neither is good.
    let wrong = [("authorization", "SharedKey acct:c2ln")];
    let response = send(&client, &useless, ("GET", "Tables", &wrong, ""));
    assert_eq!(status_and_code(&response), (403, "AuthenticationFailed"));
}

#[test]
fn a_signature_in_the_url_stands_in_for_a_header_that_is_not_valid() {
    let client = with_entities();
    let good = account_sas(&client, "c", "l");
    for wrong in [
        "SharedKey acct:c2ln",
        "SharedKey other:c2ln",
        "Bearer x",
        "nothing",
    ] {
        let wrong = [("authorization", wrong)];
        let response = send(&client, &good, ("GET", "Tables", &wrong, ""));
        assert_eq!(response.status(), 200, "{wrong:?}");
        // It grants what it says, and no more.
        let response = send(&client, &good, ("GET", "people()", &wrong, ""));
        assert_eq!(response.status(), 403, "{wrong:?}");
    }
}

#[test]
fn a_signature_brings_its_version() {
    let client = with_entities();
    let sas = account_sas(&client, "o", "r");
    let without = [("x-ms-version", "")];
    let response = send(&client, &sas, ("GET", "people()", &without, ""));
    assert_eq!(header(&response, "x-ms-version"), Some("2019-02-02"));
    let resource = "people()?api-version=2018-03-28";
    let response = send(&client, &sas, ("GET", resource, &without, ""));
    assert_eq!(header(&response, "x-ms-version"), Some("2018-03-28"));
    let with = [("x-ms-version", "2020-12-06")];
    let response = send(&client, &sas, ("GET", resource, &with, ""));
    assert_eq!(header(&response, "x-ms-version"), Some("2020-12-06"));
}

#[test]
fn a_signature_reads_from_the_secondary_but_does_not_write() {
    let client = with_entities();
    let sas = table_sas(&client, &format!("sp=raud&{UNTIL}"));
    let get = client.request("GET", &format!("/acct-secondary/people()?{sas}"), &[], "");
    assert_eq!(client.call(get).status(), 200);
    let entity = r#"{"PartitionKey":"C","RowKey":"9"}"#;
    let path = format!("/acct-secondary/people?{sas}");
    let response = client.call(client.request("POST", &path, &[], entity));
    let expected = (403, "InsufficientAccountPermissions");
    assert_eq!(status_and_code(&response), expected);
    assert_eq!(keys(&client), "B1 B2 C1 D1 D2 ");
    let sas = account_sas(&client, "s", "r");
    let path = format!("/acct-secondary/?restype=service&comp=stats&{sas}");
    assert_eq!(
        client.call(client.request("GET", &path, &[], "")).status(),
        200
    );
}

proptest! {
    #[test]
    fn any_signature_is_answered(
        query in "(sv=20[12][0-9]-0[1-9]-[01][0-9]&)?((tn|sp|st|se|si|sip|spr|spk|srk|epk|erk|ss|srt|ses|sig)=[-a-zA-Z0-9%+,:.=]{0,12}&){0,10}",
        signed in any::<bool>(),
    ) {
        let client = Client::with_table();
        let query = match SignedSas::parse(&format!("sv=2019-02-02&tn=people&sp=r&se=2030-01-01&{query}sig=x")) {
            Ok(sas) if signed => sas.into_sas().sign(&client.key).expose().as_str().to_owned(),
            _ => query,
        };
        let path = format!("/acct/people()?{query}");
        let status = client.call(client.request("GET", &path, &[], "")).status().as_u16();
        prop_assert!([200, 403].contains(&status), "{status}");
    }
}
