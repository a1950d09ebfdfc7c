//! Entity group transactions: what each rule answers, and that nothing is left behind where one is broken.
//!
//! What clients put on the wire and the bytes of the answers are tested in `tests/wire`.

use super::*;
use crate::service::handler::tests::signatures::signed as sign;

/// A batch with one set of these changes.
fn batch(changes: &[&str]) -> String {
    format!("{}--batch_1--\r\n", change_set(changes))
}

fn change_set(changes: &[&str]) -> String {
    let mut text =
        "--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n".to_owned();
    for change in changes {
        text += &part("changeset_1", change);
    }
    text + "--changeset_1--\r\n\r\n"
}

fn query(target: &str) -> String {
    part("batch_1", &format!("GET {target} HTTP/1.1\r\n\r\n"))
}

fn part(boundary: &str, request: &str) -> String {
    format!(
        "--{boundary}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n{request}\r\n"
    )
}

/// A request of one line, some headers and a body.
fn change(line: &str, headers: &[&str], body: &str) -> String {
    let mut text = format!("{line} HTTP/1.1\r\nAccept: application/json;odata=nometadata\r\n");
    for header in headers {
        text = text + header + "\r\n";
    }
    if !body.is_empty() {
        text += "Content-Type: application/json\r\n";
    }
    text + "\r\n" + body
}

fn insert(row: &str) -> String {
    insert_with(row, r#""a":1"#)
}

fn insert_with(row: &str, property: &str) -> String {
    let body = format!(r#"{{"PartitionKey":"p","RowKey":"{row}",{property}}}"#);
    let line = "POST http://127.0.0.1:10002/acct/people";
    change(line, &["Prefer: return-no-content"], &body)
}

fn write(verb: &str, row: &str, headers: &[&str], body: &str) -> String {
    let line = format!("{verb} https://elsewhere/acct/people(PartitionKey='p',RowKey='{row}')");
    change(&line, headers, body)
}

fn send(client: &Client, body: &str) -> Response<Bytes> {
    let content_type = [("content-type", "multipart/mixed; boundary=batch_1")];
    client.send("POST", "$batch", &content_type, body)
}

/// Sends these changes.
fn submit(client: &Client, changes: &[&str]) -> Response<Bytes> {
    send(client, &batch(changes))
}

/// The statuses of the parts, and code and message of the error, if there is one.
fn outcome(response: &Response<Bytes>) -> (Vec<u16>, String, String) {
    assert_eq!(response.status(), 202, "{}", body(response));
    let statuses = body(response).split("\r\n\r\nHTTP/1.1 ").skip(1);
    let statuses = statuses
        .map(|part| part.split(' ').next().unwrap().parse().unwrap())
        .collect();
    let field = |name: &str| {
        let (_, rest) = body(response).split_once(&format!(r#""{name}":""#))?;
        Some(rest.split(['"', '\\']).next()?.to_owned())
    };
    let code = field("code").unwrap_or_default();
    let message = field(r#"lang":"en-US","value"#).unwrap_or_default();
    (statuses, code, message)
}

/// All entities, as they are returned without metadata, timestamps included.
fn state(client: &Client) -> String {
    body(&client.send("GET", "people()", &[], "")).to_owned()
}

/// A table with the entities `one` and `two`.
fn people() -> Client {
    let client = Client::with_table();
    let response = submit(&client, &[&insert("one"), &insert("two")]);
    assert_eq!(outcome(&response).0, [204, 204]);
    client.advance(1);
    client
}

#[test]
fn every_kind_of_change_is_carried_out() {
    let client = people();
    let written = "2024-03-15T10:20:31Z";
    let response = submit(
        &client,
        &[
            &insert("three"),
            &change(
                "POST /people",
                &[],
                r#"{"PartitionKey":"p","RowKey":"four"}"#,
            ),
            &write("DELETE", "one", &["If-Match: *"], ""),
            &write("PATCH", "two", &[], r#"{"b":2}"#),
            &write("PUT", "five", &[], r#"{"b":"}\u007b%7D"}"#),
            &write("POST", "six", &["X-HTTP-Method: MERGE"], ""),
        ],
    );
    assert_eq!(outcome(&response).0, [204, 201, 204, 204, 204, 204]);
    assert_eq!(body(&response).matches(&*etag(written)).count(), 5);
    let echo = format!(r#"{{"PartitionKey":"p","RowKey":"four","Timestamp":"{written}"}}"#);
    assert!(body(&response).contains(&echo), "{}", body(&response));
    let entity = |row: &str, properties: &str| {
        format!(r#"{{"PartitionKey":"p","RowKey":"{row}","Timestamp":"{written}"{properties}}}"#)
    };
    let expected = [
        entity("five", r#","b":"}{%7D""#),
        entity("four", ""),
        entity("six", ""),
        entity("three", r#","a":1"#),
        entity("two", r#","a":1,"b":2"#),
    ];
    assert_eq!(
        state(&client),
        format!(r#"{{"value":[{}]}}"#, expected.join(","))
    );

    // A condition that held, and no longer does.
    let if_match = format!("If-Match: {}", etag(written));
    let conditional = write("PUT", "two", &[&if_match], "");
    assert_eq!(outcome(&submit(&client, &[&conditional])).0, [204]);
    assert_eq!(outcome(&submit(&client, &[&conditional])).0, [412]);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of the rules")]
fn a_broken_rule_is_answered_in_its_place_and_nothing_is_left_behind() {
    let client = people();
    let before = state(&client);
    let good = insert("new");
    let stale = "If-Match: W/\"datetime'2020-01-01T00%3A00%3A00Z'\"";
    let huge = format!(r#""a":"{}""#, "x".repeat(32 * 1024 + 1));
    let any = &["If-Match: *"];
    let exists = "The specified entity already exists.";
    let missing = "The specified resource does not exist.";
    let condition = "The update condition specified in the request was not satisfied.";
    let invalid = "One of the request inputs is not valid.";
    let group = "All commands in a batch must operate on same entity group.";
    let elsewhere = r#"{"PartitionKey":"q","RowKey":"new2"}"#;
    for (bad, status, code, message) in [
        (insert("one"), 409, "EntityAlreadyExists", exists),
        (
            write("DELETE", "none", any, ""),
            404,
            "ResourceNotFound",
            missing,
        ),
        (
            write("PUT", "none", any, "{}"),
            404,
            "ResourceNotFound",
            missing,
        ),
        (
            write("MERGE", "one", &[stale], "{}"),
            412,
            "UpdateConditionNotSatisfied",
            condition,
        ),
        (
            write("DELETE", "one", &[stale], ""),
            412,
            "UpdateConditionNotSatisfied",
            condition,
        ),
        (
            write("DELETE", "one", &["If-Match: test"], ""),
            400,
            "InvalidInput",
            "The etag value 'test' specified in one of the request headers is not valid. Please make sure only one etag value is specified and is valid.",
        ),
        (
            write("DELETE", "one", &[], ""),
            400,
            "InvalidInput",
            invalid,
        ),
        (
            insert("new"),
            400,
            "InvalidDuplicateRow",
            "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request.",
        ),
        (
            write("PUT", "new", &[], "{}"),
            400,
            "InvalidDuplicateRow",
            "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request.",
        ),
        (
            change("POST /people", &[], elsewhere),
            400,
            "CommandsInBatchActOnDifferentPartitions",
            group,
        ),
        (
            change("PUT /others(PartitionKey='p',RowKey='x')", &[], ""),
            400,
            "CommandsInBatchActOnDifferentPartitions",
            group,
        ),
        (
            change("GET /people(PartitionKey='p',RowKey='one')", &[], ""),
            400,
            "InvalidInput",
            invalid,
        ),
        (
            change("GET /people()", &[], ""),
            400,
            "InvalidInput",
            invalid,
        ),
        (
            change("POST /Tables", &[], r#"{"TableName":"others"}"#),
            400,
            "InvalidInput",
            invalid,
        ),
        (
            change("PUT /people", &[], "{}"),
            405,
            "MethodNotAllowed",
            "The requested method is not allowed on the specified resource.",
        ),
        (
            change("POST /people", &[], "{"),
            400,
            "InvalidInput",
            invalid,
        ),
        (
            change("POST /people", &[], r#"{"PartitionKey":"p"}"#),
            400,
            "PropertiesNeedValue",
            "The values are not specified for all properties in the entity.",
        ),
        (
            insert_with("x", r#""a-b":1"#),
            400,
            "PropertyNameInvalid",
            "The property name is invalid.",
        ),
        (
            insert_with("x", &huge),
            400,
            "PropertyValueTooLarge",
            "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 encoded and the maximum number of characters should be 32K or less.",
        ),
        (
            write("PUT", "a%2Fb", &[], "{}"),
            400,
            "OutOfRangeInput",
            "The 'RowKey' parameter of value 'a/b' is out of range.",
        ),
    ] {
        for changes in [
            vec![&*good, &bad],
            vec![&good, &bad, &insert("last")],
            // What comes later is not looked at, however wrong it is.
            vec![&good, &bad, &insert("one"), &change("GET /", &[], "")],
        ] {
            let answer = submit(&client, &changes);
            let expected = (vec![status], code.to_owned(), format!("1:{message}"));
            assert_eq!(outcome(&answer), expected, "{bad:.100}");
            assert_eq!(state(&client), before, "{bad:.100}");
        }
    }
    // Where the first change cannot be done, it is the one, although a later one cannot even be read.
    let changes = [&*insert("one"), &change("POST /people", &[], "{")];
    let (_, code, message) = outcome(&submit(&client, &changes));
    assert_eq!(code, "EntityAlreadyExists");
    assert_eq!(message, format!("0:{exists}"));
    assert_eq!(state(&client), before);
}

#[test]
fn a_signature_has_to_cover_every_change() {
    let client = people();
    let before = state(&client);
    let any = &["If-Match: *"];
    let elsewhere = r#"{"PartitionKey":"q","RowKey":"new"}"#;
    let submit = |fields: &str, body: &str| {
        let expiry = "se=2024-03-15T11:00:00Z";
        let sas = sign(&client, &format!("sv=2019-02-02&{expiry}&{fields}"));
        let headers = [("content-type", "multipart/mixed; boundary=batch_1")];
        client.call(client.request("POST", &format!("/acct/$batch?{sas}"), &headers, body))
    };
    let alone = |target| query(target) + "--batch_1--";
    let permission = "AuthorizationPermissionMismatch";
    let all = batch(&[
        &insert("new"),
        &write("PUT", "one", any, "{}"),
        &write("PUT", "two", &[], "{}"),
        &write("DELETE", "none", any, ""),
    ]);
    let upsert = batch(&[&write("MERGE", "two", &[], "{}")]);
    let insert_elsewhere = batch(&[&change("POST /people", &[], elsewhere)]);
    let in_range = "tn=people&sp=raud&spk=p&srk=two&epk=p";
    for (fields, body, code) in [
        ("tn=people&sp=rau", &all, permission),
        ("tn=people&sp=rad", &all, permission),
        ("tn=people&sp=rud", &all, permission),
        ("tn=people&sp=ra", &upsert, permission),
        ("tn=people&sp=ru", &upsert, permission),
        ("ss=t&srt=o&sp=au", &all, permission),
        ("ss=t&srt=o&sp=a", &upsert, permission),
        (
            "ss=t&srt=c&sp=raud",
            &upsert,
            "AuthorizationResourceTypeMismatch",
        ),
        ("tn=others&sp=raud", &upsert, "AuthorizationFailure"),
        (in_range, &all, "AuthorizationFailure"),
        (in_range, &insert_elsewhere, "AuthorizationFailure"),
        ("tn=people&sp=aud", &alone("/people()"), permission),
    ] {
        let response = submit(fields, body);
        assert_eq!(status_and_code(&response), (403, code), "{fields} {body}");
        assert_eq!(state(&client), before, "{fields} {body}");
    }
    // What is out of range is not found, and what is in range alone is shown.
    let one = submit(in_range, &alone("/people(PartitionKey='p',RowKey='one')"));
    assert_eq!(outcome(&one).0, [404]);
    let page = submit(in_range, &alone("/people()"));
    assert_eq!(outcome(&page).0, [200]);
    assert_eq!(body(&page).matches("RowKey").count(), 1);

    assert_eq!(outcome(&submit("tn=people&sp=au", &upsert)).0, [204]);
    assert_eq!(outcome(&submit(in_range, &upsert)).0, [204]);
    assert_eq!(outcome(&submit("ss=t&srt=o&sp=au", &upsert)).0, [204]);
    assert_eq!(outcome(&submit("tn=people&sp=raud", &all)).0, [404]);
}

#[test]
fn a_missing_table_is_the_fault_of_the_first_change() {
    let client = people();
    let missing = |line: &str, body| change(line, &["If-Match: *"], body);
    let delete = missing("DELETE /nobody(PartitionKey='p',RowKey='r')", "");
    let insert = missing("POST /nobody", r#"{"PartitionKey":"p","RowKey":"s"}"#);
    for changes in [[&*delete, &*insert], [&*insert, &*delete]] {
        let (statuses, code, message) = outcome(&submit(&client, &changes));
        assert_eq!((&*statuses, &*code), (&[404][..], "TableNotFound"));
        assert_eq!(message, "0:The table specified does not exist.");
    }
}

#[test]
fn a_hundred_changes_are_carried_out_and_no_more() {
    let client = people();
    let changes: Vec<_> = (0..101).map(|n| insert(&n.to_string())).collect();
    let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
    let before = state(&client);
    let (statuses, code, message) = outcome(&submit(&client, &changes));
    assert_eq!((&*statuses, &*code), (&[400][..], "InvalidInput"));
    assert_eq!(
        message,
        "99:The batch request operation exceeds the maximum 100 changes per change set."
    );
    assert_eq!(state(&client), before);
    let (statuses, ..) = outcome(&submit(&client, &changes[..100]));
    assert_eq!(statuses, [204; 100]);
    assert_eq!(state(&client).matches("RowKey").count(), 102);
}

#[test]
fn of_two_sets_of_changes_the_second_is_refused() {
    let client = people();
    let first = insert("three");
    let two = change_set(&[&first]) + &batch(&[&insert("four")]);
    let (statuses, code, _) = outcome(&send(&client, &two));
    assert_eq!((&*statuses, &*code), (&[204, 400][..], "InvalidInput"));
    assert!(state(&client).contains("three"));
    assert!(!state(&client).contains("four"));
}

#[test]
fn a_query_stands_alone() {
    let client = people();
    let before = state(&client);
    let point = query("/acct/people(PartitionKey='p',RowKey='one')?$select=a");
    let end = "--batch_1--\r\n";
    let answer = send(&client, &(point.clone() + end));
    assert_eq!(outcome(&answer).0, [200]);
    assert!(!body(&answer).contains("changesetresponse"));
    assert!(body(&answer).contains(r#""a":1}"#), "{}", body(&answer));

    let page = query("http://h/acct/people()?$filter=RowKey%20gt%20'o'&$top=1&$select=RowKey");
    let answer = send(&client, &(page + end));
    assert_eq!(outcome(&answer).0, [200]);
    assert!(
        body(&answer).contains(r#""value":[{"odata.etag""#)
            || body(&answer).contains(r#""RowKey":"one""#)
    );
    assert!(body(&answer).contains("\r\nx-ms-continuation-NextRowKey: 1!4!dHdv\r\n"));

    for (target, status, code) in [
        (
            "/people(PartitionKey='p',RowKey='x')",
            404,
            "ResourceNotFound",
        ),
        ("/nobody()", 404, "TableNotFound"),
        ("/people()?$filter=a%20eq", 400, "InvalidInput"),
        ("/Tables", 400, "InvalidInput"),
    ] {
        let (statuses, found, message) = outcome(&send(&client, &(query(target) + end)));
        assert_eq!((&*statuses, &*found), (&[status][..], code), "{target}");
        assert!(message.starts_with("0:"), "{message}");
    }
    for mixed in [
        point.clone() + &point + end,
        point.clone() + &batch(&[&insert("x")]),
        change_set(&[&insert("x")]) + &point + end,
    ] {
        let answer = send(&client, &mixed);
        assert_eq!(status_and_code(&answer), (400, "InvalidInput"));
        assert_eq!(state(&client), before);
    }
}

#[test]
fn what_is_no_batch_is_refused_as_a_whole() {
    let client = people();
    let before = state(&client);
    let good = batch(&[&insert("x")]);
    let multipart = "multipart/mixed; boundary=batch_1";
    for (method, content_type, text, expected) in [
        ("GET", "", "", (405, "MethodNotAllowed")),
        ("PUT", multipart, &*good, (405, "MethodNotAllowed")),
        ("DELETE", "", "", (405, "MethodNotAllowed")),
        (
            "POST",
            "application/json",
            "{}",
            (415, "MediaTypeNotSupported"),
        ),
        ("POST", "", &good, (415, "MediaTypeNotSupported")),
        ("POST", "multipart/mixed", &good, (400, "InvalidInput")),
        (
            "POST",
            "multipart/mixed; boundary=other",
            &good,
            (400, "InvalidInput"),
        ),
        ("POST", multipart, "", (400, "InvalidInput")),
        ("POST", multipart, "{}", (400, "InvalidInput")),
        ("POST", multipart, &batch(&[]), (202, "")),
        (
            "POST",
            multipart,
            &batch(&["nothing"]),
            (400, "InvalidInput"),
        ),
        // Cut off anywhere, it is not carried out.
        (
            "POST",
            multipart,
            good.strip_suffix("--batch_1--\r\n").unwrap(),
            (400, "InvalidInput"),
        ),
        (
            "POST",
            multipart,
            &good.replace("--changeset_1--", ""),
            (400, "InvalidInput"),
        ),
    ] {
        let headers = [("content-type", content_type), ("x-unknown", "ignored")];
        let response = client.send(method, "$batch", &headers, text);
        assert_eq!(status_and_code(&response), expected, "{method} {text}");
        assert_eq!(state(&client), before);
    }
    let mut request = client.request(
        "POST",
        "/acct/$batch",
        &[("content-type", multipart)],
        &good,
    );
    let response = client.call(request.clone());
    assert_eq!(response.status(), 403);
    request = client.request(
        "POST",
        "/second/$batch",
        &[("content-type", multipart)],
        &good,
    );
    client.sign(&mut request, Scheme::SharedKey);
    assert_eq!(client.call(request).status(), 403);
    assert_eq!(state(&client), before);
}

#[test]
fn the_outer_request_alone_is_authenticated() {
    let client = people();
    let headers = ["Authorization: SharedKey stranger:d3Jvbmc=", "x-ms-date: x"];
    let body = r#"{"PartitionKey":"p","RowKey":"x"}"#;
    let with_sas = change("POST /people?sv=1&sig=wrong", &headers, body);
    assert_eq!(outcome(&submit(&client, &[&with_sas])).0, [201]);
    // But no change reaches another account than the one that was authenticated.
    let other = change("POST http://h/second/people", &[], body);
    let (statuses, code, message) = outcome(&submit(&client, &[&other]));
    assert_eq!((&*statuses, &*code), (&[400][..], "InvalidUri"));
    assert!(message.starts_with("0:"), "{message}");
}

proptest::proptest! {
    #[test]
    fn whatever_is_changed_together_is_answered(
        lines in proptest::collection::vec("(POST|PUT|MERGE|DELETE|GET) /(acct/)?(people|nobody)([(]PartitionKey='[pq]',RowKey='[ab]'[)])?", 1..4),
        header in "(If-Match: [*W]|Prefer: return-no-content|Content-Type: application/json|[a-z:]{0,9})",
        body in r#"(\{"PartitionKey":"[pq]","RowKey":"[ab]"\}|[{}a-z"\r\n-]{0,20})"#,
        cut in 0..2000_usize,
    ) {
        let client = Client::with_table();
        let changes: Vec<_> = lines.iter().map(|line| change(line, &[&header], &body)).collect();
        let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
        let text = batch(&changes);
        let text = text.get(..cut).unwrap_or(&text);
        let status = send(&client, text).status();
        proptest::prop_assert!([202, 400].contains(&status.as_u16()), "{status}");
    }
}
