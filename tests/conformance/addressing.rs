//! URLs, hosts, verbs, and the rules of HTTP that hold for every request.

use serde_json::json;

use crate::client::Credential;
use crate::run::{Suite, choice, holds, refused, rule, same};

const FULL: &str = "Accept: application/json;odata=fullmetadata";

pub(crate) async fn check(suite: &mut Suite) {
    let table = suite.table().await;
    suite.insert(&table, r#""PartitionKey":"p","RowKey":"r""#).await.unwrap();
    rule!(suite, "1.2 a slash at the end of the account", {
        suite.done("GET /?restype=service&comp=properties", &["Accept: application/xml"], "").await.map(drop)
    });
    rule!(suite, "1.2 doubled slashes", {
        suite.done("GET //Tables", &[], "").await?;
        suite.done(&format!("GET //{table}()"), &[], "").await.map(drop)
    });
    rule!(suite, "1.2 the set of tables with parentheses", {
        suite.done("GET /Tables()", &[], "").await.map(drop)
    });
    rule!(suite, "11.1 unknown headers and options are ignored", {
        let headers = ["traceparent: 00-0-0-00", "Accept-Charset: UTF-8", "x-ms-whatever: 1"];
        suite.done(&format!("GET /{table}()?whatever=1&timeout=20"), &headers, "").await.map(drop)
    });
    rule!(suite, "11.1 a chunked body", {
        let body = r#"{"PartitionKey":"p","RowKey":"chunked"}"#;
        let chunks = format!("{:x}\r\n{}\r\n{:x}\r\n{}\r\n0\r\n\r\n", 10, &body[..10], body.len() - 10, &body[10..]);
        let response = suite.ask(&format!("POST /{table}"), &["Transfer-Encoding: chunked"], &chunks).await;
        same("status", &response.status, &201)
    });
    rule!(suite, "2.3 Expect: 100-continue", {
        let body = r#"{"PartitionKey":"p","RowKey":"expect"}"#;
        let response = suite.ask(&format!("POST /{table}"), &["Expect: 100-continue"], body).await;
        // A client that sends the body at once receives 100 or the response.
        let ok = response.status == 201 || response.status == 100 && response.body.contains("201 Created");
        same("has a response", &ok, &true)
    });
    rule!(suite, "11.1 several requests on one connection", {
        let account = &suite.account;
        let date = "Fri, 15 Mar 2024 10:20:30 GMT";
        let one = format!("GET {}/Tables HTTP/1.1\r\nHost: {}\r\nx-ms-date: {date}\r\nContent-Length: 0\r\n", account.path, account.authority);
        let response = account.exchange(&format!("{one}\r\n{one}Connection: close\r\n\r\n")).await;
        same("responses", &(response.body.matches("HTTP/1.1 ").count() + 1), &2)
    });
    rule!(suite, "11.1 the port of the Host is the one of the URLs in responses", {
        let body = r#"{"PartitionKey":"p","RowKey":"host"}"#;
        let response = suite.ask(&format!("POST /{table}"), &["Host: 127.0.0.1:4711"], body).await;
        let location = response.header("Location").unwrap_or_default();
        same("Location", &location.starts_with("http://127.0.0.1:4711/"), &true)
    });
    rule!(suite, "1.1 the account in the host", {
        let account = &suite.account;
        let host = format!("Host: {}.table.localhost:10002", account.name);
        let response = account.send_to(Credential::SharedKeyLite, "GET", "/Tables", &[&host], "").await;
        same("status", &response.status, &200)?;
        let url = format!("http://{}.table.localhost:10002/$metadata#Tables", account.name);
        same("metadata", &response.json()["odata.metadata"].as_str(), &Some(&*url))
    });
    choice!(suite, "1.1 URLs in responses have the host as it was written", {
        let account = &suite.account;
        let (first, rest) = account.name.split_at(1);
        let upper = format!("{}{rest}.Table.Localhost:41000", first.to_uppercase());
        for host in [&*upper, &format!("{}.example.com", account.name)] {
            let headers = [&*format!("Host: {host}"), FULL];
            let path = format!("/{table}(PartitionKey='p',RowKey='r')");
            let response = account.send_to(Credential::SharedKeyLite, "GET", &path, &headers, "").await;
            same(host, &response.status, &200)?;
            let metadata = format!("http://{host}/$metadata#{table}/@Element");
            same("metadata", &response.json()["odata.metadata"].as_str(), &Some(&*metadata))?;
            same("id", &response.json()["odata.id"].as_str(), &Some(&*format!("http://{host}{path}")))?;
        }
        Ok(())
    });
    choice!(suite, "1.1 the path has the account if the host has none", {
        let account = &suite.account;
        for host in ["[::1]:10002", "localhost:10002", "host.docker.internal:10002", "tables", "unknown.table.localhost:10002"] {
            let target = format!("{}/Tables('{table}')", account.path);
            let headers = [&*format!("Host: {host}"), FULL];
            let response = account.send_to(Credential::SharedKeyLite, "GET", &target, &headers, "").await;
            same(host, &response.json()["odata.id"].as_str(), &Some(&*format!("http://{host}{target}")))?;
        }
        Ok(())
    });
    choice!(suite, "1.1, 3.10 the secondary in the host is read and not written to", {
        let account = &suite.account;
        let host = format!("Host: {}-secondary.table.localhost:10002", account.name);
        let stats = "/?restype=service&comp=stats";
        for (method, target, expected) in [
            ("GET", &*format!("/Tables('{table}')"), (200, "")),
            ("GET", stats, (200, "")),
            ("DELETE", &format!("/Tables('{table}')"), (403, "InsufficientAccountPermissions")),
        ] {
            let response = account.send_to(Credential::SharedKeyLite, method, target, &[&host], "").await;
            refused(&response, expected.0, expected.1)?;
        }
        Ok(())
    });
    choice!(suite, "1.1 an unknown account", {
        let response = suite.account.send_to(Credential::None, "GET", "/unknown/Tables", &[], "").await;
        refused(&response, 404, "ResourceNotFound")
    });
    rule!(suite, "1.1 the secondary of a path is read", {
        let target = format!("{}-secondary/{table}()", suite.account.path);
        let response = suite.account.send_to(Credential::SharedKeyLite, "GET", &target, &[], "").await;
        same("status", &response.status, &200)
    });
    rule!(suite, "F.12 a batch with a query on the secondary", {
        for target in [format!("{}-secondary/{table}()", suite.account.path), format!("{}/{table}()", suite.account.path)] {
            let query = format!("--b\r\nContent-Type: application/http\r\n\r\nGET {target} HTTP/1.1\r\nAccept: application/json;odata=nometadata\r\n\r\n\r\n--b--\r\n");
            let batch = format!("{}-secondary/$batch", suite.account.path);
            let headers = ["Content-Type: multipart/mixed; boundary=b"];
            let response = suite.account.send_to(Credential::SharedKeyLite, "POST", &batch, &headers, &query).await;
            same("status", &response.status, &202)?;
            holds(&response.body, response.body.contains("HTTP/1.1 200 OK") && response.body.contains(r#""RowKey":"r""#))?;
        }
        Ok(())
    });
    rule!(suite, "3.10 the secondary is not written to", {
        let target = format!("{}-secondary/{table}", suite.account.path);
        let body = r#"{"PartitionKey":"p","RowKey":"s"}"#;
        let response = suite.account.send_to(Credential::SharedKeyLite, "POST", &target, &[], body).await;
        same("status", &response.status, &403)
    });
    choice!(suite, "3.10 no operation writes to the secondary", {
        let path = format!("{table}(PartitionKey='p',RowKey='r')");
        for (method, resource, headers, body) in [
            ("POST", "Tables", &[][..], r#"{"TableName":"more"}"#),
            ("DELETE", &format!("Tables('{table}')"), &[], ""),
            ("POST", &table, &[], r#"{"PartitionKey":"p","RowKey":"s"}"#),
            ("PUT", &path, &[], r#"{"a":1}"#),
            ("MERGE", &path, &["If-Match: *"], r#"{"a":1}"#),
            ("DELETE", &path, &["If-Match: *"], ""),
            ("PUT", &format!("{table}?comp=acl"), &[], ""),
            ("PUT", "?restype=service&comp=properties", &[], "<StorageServiceProperties><Cors /></StorageServiceProperties>"),
        ] {
            let target = format!("{}-secondary/{resource}", suite.account.path);
            let response = suite.account.send_to(Credential::SharedKeyLite, method, &target, headers, body).await;
            refused(&response, 403, "InsufficientAccountPermissions").map_err(|why| format!("{method} {resource}: {why}"))?;
            holds("the message", response.body.contains("Write operations are not allowed."))?;
        }
        same("entity", &suite.entity(&table, "p", "r").await?, &json!({"PartitionKey":"p","RowKey":"r"}))
    });
    suite.refusals(&table, &[
        ("1.2 Tables after a table, POST", "POST /TABLE/Tables", &[], r#"{"TableName":"x"}"#, 400, "PropertiesNeedValue"),
        ("1.2 Tables after a missing table, POST", "POST /ConfMissing/Tables", &[], r#"{"TableName":"x"}"#, 404, "TableNotFound"),
        ("1.2 Tables after a table, DELETE", "DELETE /TABLE/Tables('x')", &[], "", 400, "InvalidInput"),
        ("1.2 Tables after a missing table, DELETE", "DELETE /ConfMissing/Tables('x')", &[], "", 404, "TableNotFound"),
        ("1.2 Tables after a table, GET", "GET /TABLE/Tables", &[], "", 501, "NotImplemented"),
        ("1.2 service properties after a table", "GET /TABLE/?restype=service&comp=properties", &[], "", 400, "InvalidQueryParameterValue"),
        ("1.2 a batch after a table", "POST /TABLE/$batch", &[], "", 415, "MediaTypeNotSupported"),
    ]).await;
    verbs(suite, &table).await;
    tables_of_metrics(suite).await;
    suite.refusals_by_choice(&table, &[
        ("4.12 PUT of a set", "PUT /TABLE", &[], "{}", 405, "MethodNotAllowed"),
        ("4.12 DELETE of a set", "DELETE /Tables", &[], "", 405, "MethodNotAllowed"),
        ("4.12 an unknown verb", "BREW /TABLE", &[], "", 405, "UnsupportedHttpVerb"),
        ("4.12 conditions on tables", "DELETE /Tables('TABLE')", &["If-Match: *"], "", 400, "InvalidInput"),
        ("4.12 conditions on a new table", "POST /Tables", &["If-None-Match: *"], r#"{"TableName":"ConfNew"}"#, 400, "InvalidInput"),
        ("4.12 conditions on a query of tables", "GET /Tables", &["If-Match: *"], "", 400, "InvalidInput"),
        ("4.12 conditions on a read of a table", "GET /Tables('TABLE')", &["If-None-Match: *"], "", 400, "InvalidInput"),
        ("1.2 the encoded set of tables after a table, DELETE", "DELETE /TABLE/Tables%28%27x%27%29", &[], "", 400, "InvalidInput"),
        ("1.2 tables after a table, with options", "GET /TABLE/Tables()?$top=1", &[], "", 501, "NotImplemented"),
        ("1.2 tables after a table, PUT", "PUT /TABLE/Tables", &[], "", 405, "MethodNotAllowed"),
        ("1.2 service properties after a table, PUT", "PUT /TABLE/?restype=service&comp=properties", &[], "", 400, "InvalidQueryParameterValue"),
        ("1.2 anything else after a table", "GET /TABLE/cities", &[], "", 400, "InvalidUri"),
        ("1.2 more segments after a table", "GET /TABLE/more/of/it", &[], "", 400, "InvalidUri"),
        ("1.2 the metadata document after a table", "GET /TABLE/$metadata", &[], "", 400, "InvalidUri"),
        ("1.2 the account alone", "GET /", &[], "", 400, "InvalidUri"),
        ("1.2 a malformed option", "GET /Tables?$filter=%FF", &[], "", 400, "InvalidInput"),
        ("2.2 a timeout of no time", "GET /TABLE()?timeout=0", &[], "", 400, "OutOfRangeQueryParameterValue"),
    ]).await;
    choice!(suite, "2.2 a timeout is a number of seconds", {
        for resource in [&*format!("{table}()?"), "Tables?", &format!("{table}?comp=acl&")] {
            for timeout in ["30", "1", "", "90", "99999999999999999999999"] {
                suite.expect(&format!("GET /{resource}timeout={timeout}"), &[], "", (200, "")).await?;
            }
            for timeout in ["-1", "1.5", "%2B5", "soon"] {
                let expected = (400, "InvalidQueryParameterValue");
                suite.expect(&format!("GET /{resource}timeout={timeout}"), &[], "", expected).await?;
            }
        }
        Ok(())
    });
}

/// The verbs of each resource.
async fn verbs(suite: &mut Suite, table: &str) {
    let point = format!("{table}(PartitionKey='p',RowKey='r')");
    for (resource, verbs) in [
        ("Tables", "PUT PATCH MERGE DELETE OPTIONS HEAD"),
        (&*format!("Tables('{table}')"), "PUT PATCH MERGE POST OPTIONS HEAD"),
        (table, "PUT PATCH MERGE DELETE OPTIONS HEAD"),
        (&format!("{table}()"), "PUT PATCH MERGE DELETE OPTIONS HEAD"),
        (&point, "POST OPTIONS HEAD"),
        (&format!("{table}?comp=acl"), "POST PATCH MERGE DELETE OPTIONS"),
        ("?restype=service&comp=properties", "POST PATCH MERGE DELETE OPTIONS"),
        ("?restype=service&comp=stats", "PUT POST PATCH MERGE DELETE OPTIONS"),
        ("$batch", "GET PUT PATCH MERGE DELETE OPTIONS HEAD"),
        ("$metadata", "PUT POST PATCH MERGE DELETE OPTIONS HEAD"),
    ] {
        let rule = resource.replace(table, "TABLE");
        choice!(suite, &format!("4.12 verbs that {rule} does not have"), {
            for verb in verbs.split(' ') {
                // A response to HEAD has no body, and the code is in the body.
                let code = if verb == "HEAD" { "" } else { "MethodNotAllowed" };
                suite.expect(&format!("{verb} /{resource}"), &[], "", (405, code)).await?;
            }
            for verb in ["BREW", "get", "TRACE", "COPY"] {
                suite.expect(&format!("{verb} /{resource}"), &[], "", (405, "UnsupportedHttpVerb")).await?;
            }
            Ok(())
        });
    }
    choice!(suite, "4.12 HEAD of what is XML", {
        for resource in [&*format!("{table}?comp=acl"), "?restype=service&comp=properties"] {
            let response = suite.done(&format!("HEAD /{resource}"), &[], "").await?;
            same("Content-Type", &response.header("Content-Type"), &Some("application/xml"))?;
        }
        same("status", &suite.ask("HEAD /ConfMissing?comp=acl", &[], "").await.status, &404)
    });
    choice!(suite, "4.12 X-HTTP-Method replaces a POST, once", {
        for (verb, methods, expected) in [
            ("GET", &["X-HTTP-Method: GET"][..], (400, "XMethodNotUsingPost")),
            ("POST", &["X-HTTP-Method: MERGE", "X-HTTP-Method: MERGE"], (400, "XMethodIncorrectCount")),
            ("POST", &["X-HTTP-Method: MERGE, PUT"], (400, "XMethodIncorrectCount")),
            ("PUT", &["X-HTTP-Method: MERGE", "X-HTTP-Method: PUT"], (400, "XMethodIncorrectCount")),
            ("POST", &["X-HTTP-Method: GET"], (400, "XMethodIncorrectValue")),
            ("POST", &["X-HTTP-Method: POST"], (400, "XMethodIncorrectValue")),
            ("POST", &["X-HTTP-Method: merge"], (400, "XMethodIncorrectValue")),
            ("POST", &["X-HTTP-Method: "], (400, "XMethodIncorrectValue")),
            ("POST", &["X-HTTP-Method: PATCH"], (204, "")),
            ("POST", &["X-HTTP-Method: PUT"], (204, "")),
            // Without `If-Match`.
            ("POST", &["X-HTTP-Method: DELETE"], (400, "InvalidInput")),
        ] {
            suite.expect(&format!("{verb} /{point}"), methods, r#"{"a":1}"#, expected).await?;
        }
        Ok(())
    });
    let name = suite.table().await;
    choice!(suite, "4.12 X-HTTP-Method of a table", {
        suite.expect(&format!("POST /Tables('{name}')"), &["X-HTTP-Method: DELETE"], "", (204, "")).await
    });
}

/// The service's own tables.
async fn tables_of_metrics(suite: &mut Suite) {
    let name = "$MetricsHourPrimaryTransactionsTable";
    let point = format!("{name}(PartitionKey='p',RowKey='r')");
    choice!(suite, "1.2 tables of metrics are empty and in no list", {
        let response = suite.done(&format!("GET /{name}()?$filter=a%20eq%201"), &[], "").await?;
        let metadata = format!("{}/$metadata#{name}", suite.account.url());
        same("page", &response.json(), &json!({"odata.metadata": metadata, "value": []}))?;
        let response = suite.done(&format!("GET /Tables('{name}')"), &[], "").await?;
        same("name", &response.json()["TableName"].as_str(), &Some(name))?;
        same("is listed", &suite.done("GET /Tables", &[], "").await?.body.contains(name), &false)
    });
    rule!(suite, "F.20 a table of metrics that was never enabled is missing", {
        for name in ["$MetricsTransactionsTable", "$MetricsMinutePrimaryTransactionsTable"] {
            suite.expect(&format!("GET /Tables('{name}')"), &[], "", (404, "ResourceNotFound")).await?;
        }
        Ok(())
    });
    choice!(suite, "F.20 the classic tables of metrics are readable", {
        for service in ["Blob", "Queue", "Table"] {
            let response = suite.done(&format!("GET /$MetricsTransactions{service}()"), &[], "").await?;
            same("entities", &response.json()["value"], &json!([]))?;
        }
        Ok(())
    });
    choice!(suite, "1.2 tables of metrics cannot be changed", {
        let refused = (403, "InsufficientAccountPermissions");
        for (line, headers, body, expected) in [
            (format!("GET /{point}"), &[][..], "", (404, "ResourceNotFound")),
            ("GET /$MetricsUnknown()".to_owned(), &[], "", (400, "InvalidResourceName")),
            ("POST /Tables".to_owned(), &[], &*format!(r#"{{"TableName":"{name}"}}"#), refused),
            (format!("POST /{name}"), &[], r#"{"PartitionKey":"p","RowKey":"r"}"#, refused),
            (format!("PUT /{point}"), &[], "{}", refused),
            (format!("MERGE /{point}"), &[], "{}", refused),
            (format!("DELETE /{point}"), &["If-Match: *"], "", refused),
            (format!("DELETE /Tables('{name}')"), &[], "", refused),
            (format!("PUT /{name}?comp=acl"), &[], "", refused),
        ] {
            suite.expect(&line, headers, body, expected).await?;
        }
        Ok(())
    });
}
