//! Metadata, versions and ids: section 2.

use serde_json::json;

use crate::client::Credential;
use crate::run::{Suite, choice, holds, refused, rule, same};

pub(crate) async fn check(suite: &mut Suite) {
    let table = suite.table().await;
    suite.insert(&table, r#""PartitionKey":"p","RowKey":"r","n":"5","n@odata.type":"Edm.Int64","s":"t""#).await.unwrap();
    let path = format!("/{table}(PartitionKey='p',RowKey='r')");
    for (rule, accept, option, level) in [
        ("nometadata", "application/json;odata=nometadata", "", "nometadata"),
        ("minimal", "application/json;odata=minimalmetadata", "", "minimalmetadata"),
        ("full", "application/json;odata=fullmetadata", "", "fullmetadata"),
        ("blanks", "application/json; odata=nometadata", "", "nometadata"),
        ("JSON alone is minimal", "application/json", "", "minimalmetadata"),
        ("$format comes first", "application/json;odata=nometadata", "?$format=application/json;odata=fullmetadata", "fullmetadata"),
        ("$format percent-encoded", "application/json", "?%24format=application%2Fjson%3Bodata%3Dnometadata", "nometadata"),
        ("the most precise of several", "application/json, application/json;odata=nometadata", "", "nometadata"),
        ("anything", "*/*", "", "minimalmetadata"),
        ("any application type", "application/*", "", "minimalmetadata"),
        ("upper case", "Application/JSON; OData=NoMetadata", "", "nometadata"),
        ("a charset first", "application/json;charset=utf-8;odata=fullmetadata", "", "fullmetadata"),
        ("JSON after Atom", "application/atom+xml,application/json;odata=nometadata", "", "nometadata"),
        ("anything after HTML", "text/html, */*;q=0.1", "", "minimalmetadata"),
        ("JSON after verbose JSON", "application/json;odata=verbose,application/json", "", "minimalmetadata"),
        ("$format in place of Atom", "application/atom+xml", "?$format=application%2Fjson%3B%20odata%3Dnometadata", "nometadata"),
    ] {
        rule!(suite, &format!("2.5 {rule}"), {
            let headers = [&*format!("Accept: {accept}"), "DataServiceVersion: 3.0"];
            let response = suite.done(&format!("GET {path}{option}"), &headers, "").await?;
            let expected = format!("application/json;odata={level};streaming=true;charset=utf-8");
            same("Content-Type", &response.header("Content-Type"), &Some(&*expected))?;
            let json = response.json();
            same("metadata", &json["odata.metadata"].is_string(), &(level != "nometadata"))?;
            same("ETag", &json["odata.etag"].is_string(), &(level != "nometadata"))?;
            same("type", &json["odata.type"].is_string(), &(level == "fullmetadata"))?;
            same("link", &json["odata.editLink"].is_string(), &(level == "fullmetadata"))?;
            same("Int64", &json["n@odata.type"].is_string(), &(level != "nometadata"))?;
            same("Timestamp", &json["Timestamp@odata.type"].is_string(), &(level == "fullmetadata"))?;
            same("String", &json["s@odata.type"].is_string(), &false)?;
            same("key", &json["RowKey@odata.type"].is_string(), &false)
        });
    }
    rule!(suite, "2.6 an entity at full metadata", {
        let response = suite.done(&format!("GET {path}"), &["Accept: application/json;odata=fullmetadata"], "").await?;
        let json = response.json();
        let account = &suite.account;
        same("type", &json["odata.type"], &json!(format!("{}.{table}", account.name)))?;
        same("id", &json["odata.id"], &json!(format!("{}{path}", account.url())))?;
        same("link", &json["odata.editLink"], &json!(path.trim_start_matches('/')))
    });
    rule!(suite, "2.4 the headers of every response", {
        let id = "x-ms-client-request-id: 12345-abc";
        let response = suite.done(&format!("GET {path}"), &[id, "x-ms-version: 2020-12-06"], "").await?;
        same("version", &response.header("x-ms-version"), &Some("2020-12-06"))?;
        same("client's id", &response.header("x-ms-client-request-id"), &Some("12345-abc"))?;
        same("Cache-Control", &response.header("Cache-Control"), &Some("no-cache"))?;
        same("nosniff", &response.header("X-Content-Type-Options"), &Some("nosniff"))?;
        holds("an id", response.header("x-ms-request-id").is_some())?;
        holds("a date", response.header("Date").is_some())
    });
    choice!(suite, "2.5 several Accept headers, and tables", {
        let headers = ["Accept: */*", "Accept: application/json;odata=nometadata"];
        for line in [format!("GET {path}"), "GET /Tables?$top=1".to_owned(), format!("GET /Tables('{table}')")] {
            let response = suite.done(&line, &headers, "").await?;
            let expected = "application/json;odata=nometadata;streaming=true;charset=utf-8";
            same(&line, &response.header("Content-Type"), &Some(expected))?;
        }
        Ok(())
    });
    choice!(suite, "2.4 the headers of every response, errors included", {
        for line in [format!("GET {path}"), "GET /ConfMissing()".to_owned()] {
            let response = suite.ask(&line, &["x-ms-client-request-id: !~\"{}"], "").await;
            let server = response.header("Server").unwrap_or_default();
            holds(server, server.starts_with("Windows-Azure-Table/1.0 "))?;
            same("version", &response.header("x-ms-version"), &Some("2019-02-02"))?;
            same("client's id", &response.header("x-ms-client-request-id"), &Some("!~\"{}"))?;
            same("Cache-Control", &response.header("Cache-Control"), &Some("no-cache"))?;
            same("nosniff", &response.header("X-Content-Type-Options"), &Some("nosniff"))?;
            same("length of the id", &response.header("x-ms-request-id").map(str::len), &Some(36))?;
            same("vary", &response.header("Vary"), &None::<&str>)?;
        }
        Ok(())
    });
    choice!(suite, "2.4 a client's id is returned if it is printable and of up to 1,024 characters", {
        let (longest, too_long) = ("x".repeat(1024), "x".repeat(1025));
        for (id, is_returned) in [("a", true), (&*longest, true), (&too_long, false), ("two words", false), ("caf\u{e9}", false), ("tab\there", false)] {
            for line in [&*format!("GET {path}"), "GET /ConfMissing()", "GET /?restype=service&comp=properties"] {
                let response = suite.ask(line, &[&format!("x-ms-client-request-id: {id}")], "").await;
                let returned = response.header("x-ms-client-request-id");
                same(format!("{line} {id:.20}"), &returned, &is_returned.then_some(id))?;
            }
        }
        Ok(())
    });
    rule!(suite, "0.1 an OData error has its code in the body alone", {
        let response = suite.ask("GET /ConfMissing()", &[], "").await;
        refused(&response, 404, "TableNotFound")?;
        same("header", &response.header("x-ms-error-code"), &None::<&str>)
    });
    rule!(suite, "8.1 a message ends with the id of the request and the time", {
        let response = suite.ask("GET /ConfMissing()", &[], "").await;
        let message = response.message();
        let id = response.header("x-ms-request-id").unwrap_or_default();
        let lines: Vec<_> = message.split('\n').collect();
        same("first", &lines.first(), &Some(&"The table specified does not exist."))?;
        same("second", &lines.get(1), &Some(&&*format!("RequestId:{id}")))?;
        holds("third", lines.get(2).is_some_and(|line| line.starts_with("Time:") && line.ends_with('Z')))
    });
    rule!(suite, "11.2 an error is on one line", {
        same("lines", &suite.ask("GET /ConfMissing()", &[], "").await.body.trim_end().lines().count(), &1)
    });
    for level in ["nometadata", "minimalmetadata", "fullmetadata"] {
        choice!(suite, &format!("8.1 an error in the format of {level}"), {
            let header = format!("Accept: application/json;odata={level}");
            let response = suite.ask("GET /ConfMissing()", &[&header], "").await;
            let kind = format!("application/json;odata={level};streaming=true;charset=utf-8");
            same("Content-Type", &response.header("Content-Type"), &Some(&*kind))
        });
    }
    rule!(suite, "F.17 the metadata repeats $select as it is written", {
        for (select, repeated) in [("", ""), ("n,%20s", "n,%20s"), ("n%2Cs,", "n,s,"), ("n,n", "n,n")] {
            let response = suite.done(&format!("GET /{table}()?$select={select}"), &[], "").await?;
            let expected = format!("/$metadata#{table}&$select={repeated}\"");
            holds(&response.body, response.body.contains(&expected))?;
        }
        Ok(())
    });
    rule!(suite, "F.3 an error of a data operation is XML for any type, and for none", {
        for accept in ["Accept: */*", "Accept: "] {
            for (line, body, status, code) in [
                ("GET /ConfMissing()", "", 404, "TableNotFound"),
                ("POST /Tables", r#"{"TableName":"a-b"}"#, 400, "InvalidResourceName"),
            ] {
                let response = suite.ask(line, &[accept], body).await;
                refused(&response, status, code)?;
                same("Content-Type", &response.header("Content-Type"), &Some("application/xml;charset=utf-8"))?;
                let start = format!(
                    "<error xmlns=\"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\"><code>{code}</code><message xml:lang=\"en-US\">"
                );
                holds(&response.body, response.body.contains(&start) && response.body.ends_with("</message></error>"))?;
                same("x-ms-error-code", &response.header("x-ms-error-code"), &None::<&str>)?;
            }
        }
        Ok(())
    });
    rule!(suite, "F.3, F.15 the front end has its own form of an error, and its message in the first line", {
        let response = suite.account.send(Credential::None, "GET /Tables", &["Accept: ", "Authorization: SharedKeyLite a:b"], "").await;
        holds(response.status, response.status == 403)?;
        same("Content-Type", &response.header("Content-Type"), &Some("application/xml"))?;
        holds(&response.body, response.body.contains("<m:error xmlns:m="))?;
        holds("x-ms-error-code", response.header("x-ms-error-code").is_some())?;
        holds(&response.reason, response.reason.starts_with("Server failed to authenticate the request."))
    });
    rule!(suite, "F.4 a malformed version has an error of its own form", {
        let response = suite.ask("GET /Tables", &["x-ms-version: test"], "").await;
        refused(&response, 400, "InvalidHeaderValue")?;
        let start = "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"yes\"?>";
        holds(&response.body, response.body.starts_with(start))?;
        same("x-ms-error-code", &response.header("x-ms-error-code"), &None::<&str>)
    });
    rule!(suite, "F.16 Cache-Control and Preference-Applied of errors", {
        let prefer = "Prefer: return-no-content";
        let exists = format!(r#"{{"TableName":"{table}"}}"#);
        for (line, body, code) in [
            ("POST /Tables", &*exists, "TableAlreadyExists"),
            ("POST /Tables", r#"{"TableName":"a-b"}"#, "InvalidResourceName"),
            (&*format!("POST /{table}"), r#"{"PartitionKey":"p"}"#, "PropertiesNeedValue"),
        ] {
            let response = suite.ask(line, &[prefer], body).await;
            same("code", &response.code(), &code.to_owned())?;
            same(code, &response.header("Preference-Applied"), &Some("return-no-content"))?;
            same(code, &response.header("Cache-Control"), &Some("no-cache"))?;
        }
        for (line, body, code) in [
            (format!("GET /{table}()?$filter=aaa%20bbb%20ccc"), "", "InvalidInput"),
            (format!("POST /{table}"), r#"{"PartitionKey":"p","RowKey":"name","a-b":1}"#, "PropertyNameInvalid"),
        ] {
            let response = suite.ask(&line, &[], body).await;
            same("code", &response.code(), &code.to_owned())?;
            same(code, &response.header("Cache-Control"), &None::<&str>)?;
        }
        for (verb, is_applied) in [("PUT", true), ("MERGE", true), ("DELETE", false)] {
            let line = format!("{verb} /{table}(PartitionKey='p',RowKey='prefer')");
            let if_match = if is_applied { prefer } else { "If-Match: *" };
            let response = suite.done(&line, &[prefer, if_match], if is_applied { "{}" } else { "" }).await?;
            let expected = is_applied.then_some("return-no-content");
            same(verb, &response.header("Preference-Applied"), &expected)?;
        }
        Ok(())
    });
    rule!(suite, "1.2 the metadata document has the three properties that all entities have", {
        let response = suite.done("GET /$metadata", &["Accept: application/xml"], "").await?;
        for name in ["PartitionKey", "RowKey", "Timestamp"] {
            holds(name, response.body.contains(&format!("Name=\"{name}\"")))?;
        }
        Ok(())
    });
    choice!(suite, "1.2 the metadata document is XML, of the account, and names no table", {
        for accept in ["application/xml", "application/json", "*/*"] {
            let response = suite.done("GET /$metadata", &[&format!("Accept: {accept}")], "").await?;
            same("Content-Type", &response.header("Content-Type"), &Some("application/xml"))?;
            holds("the start", response.body.starts_with("<?xml version=\"1.0\" encoding=\"utf-8\"?><edmx:Edmx "))?;
            holds("the namespace", response.body.contains(&format!("<Schema Namespace=\"{}\" ", suite.account.name)))?;
            holds("TableName", response.body.contains("Name=\"TableName\" Type=\"Edm.String\""))?;
            holds("Timestamp", response.body.contains("Name=\"Timestamp\" Type=\"Edm.DateTime\""))?;
            holds("no table", !response.body.contains(&table))?;
        }
        Ok(())
    });
    versions(suite, &table).await;
    checksums(suite, &table).await;
    choice!(suite, "4.10 Prefer in every form", {
        for (row, prefer, status, applied) in [
            ("1", "Return-No-Content;x=y", 204, Some("return-no-content")),
            ("2", "respond-async, return-content", 201, Some("return-content")),
            ("3", "return-content, return-no-content", 201, Some("return-content")),
            ("4", "return=minimal", 201, None),
        ] {
            let body = format!(r#"{{"PartitionKey":"prefer","RowKey":"{row}"}}"#);
            let response = suite.ask(&format!("POST /{table}"), &[&format!("Prefer: {prefer}")], &body).await;
            let found = (response.status, response.header("Preference-Applied"), response.body.is_empty());
            same(prefer, &found, &(status, applied, status == 204))?;
        }
        Ok(())
    });
    for version in ["2013-08-15", "2017-11-09", "9999-12-31", "2019-02-02", "2020-12-06", "2022-11-02", "2026-10-06"] {
        choice!(suite, &format!("2.1, 11.1 version {version}"), {
            let header = format!("x-ms-version: {version}");
            let response = suite.done(&format!("GET {path}"), &[&header], "").await?;
            same("version", &response.header("x-ms-version"), &Some(version))
        });
    }
    suite.refusals_by_choice("", &[
        ("2.1 a malformed version", "GET /Tables", &["x-ms-version: newest"], "", 400, "InvalidHeaderValue"),
        ("2.5 Atom", "GET /Tables", &["Accept: application/atom+xml"], "", 415, "AtomFormatNotSupported"),
        ("2.5 Atom or XML", "GET /Tables", &["Accept: application/atom+xml,application/xml"], "", 415, "AtomFormatNotSupported"),
        ("2.5 Atom by $format", "GET /Tables?$format=application/atom%2Bxml", &[], "", 415, "AtomFormatNotSupported"),
        ("2.5 HTML", "GET /Tables", &["Accept: text/html"], "", 415, "MediaTypeNotSupported"),
        ("2.5 verbose JSON by $format", "GET /Tables?$format=application/json;odata=verbose", &[], "", 415, "JsonVerboseFormatNotSupported"),
        ("2.5 verbose JSON", "GET /Tables", &["Accept: application/json;odata=verbose"], "", 415, "JsonVerboseFormatNotSupported"),
        ("2.5 JSON before there was JSON", "GET /Tables", &["x-ms-version: 2012-02-12", "Accept: application/json"], "", 415, "JsonFormatNotSupported"),
        ("2.3 a checksum of something else", "POST /Tables", &["Content-MD5: AAAAAAAAAAAAAAAAAAAAAA=="], r#"{"TableName":"ConfSum"}"#, 400, "Md5Mismatch"),
    ]).await;
}

/// Versions of the service and of OData.
async fn versions(suite: &mut Suite, table: &str) {
    let path = format!("{table}(PartitionKey='p',RowKey='r')");
    choice!(suite, "2.1 what is no date is no version", {
        for version in ["latest", "2019-2-2", "2019-02-30", "20190202", "*"] {
            let header = format!("x-ms-version: {version}");
            for line in [&*format!("GET /{path}"), "GET /?restype=service&comp=properties"] {
                let response = suite.ask(line, &[&header], "").await;
                refused(&response, 400, "InvalidHeaderValue")?;
                same("version", &response.header("x-ms-version"), &None::<&str>)?;
            }
        }
        Ok(())
    });
    for header in [
        "x-ms-version: 2009-04-14",
        "DataServiceVersion: 1.0;NetFx",
        "DataServiceVersion: 2.0",
        "MaxDataServiceVersion: 2.0;NetFx",
    ] {
        choice!(suite, &format!("2.2, 2.5 no JSON with {header}"), {
            let refused = (415, "JsonFormatNotSupported");
            for (line, body) in [
                ("GET /Tables", ""),
                ("POST /Tables", r#"{"TableName":"ConfMore"}"#),
                (&*format!("GET /{table}()"), ""),
                (&format!("POST /{table}"), r#"{"PartitionKey":"p","RowKey":"json"}"#),
                (&format!("GET /{path}"), ""),
                (&format!("PUT /{path}"), "{}"),
            ] {
                suite.expect(line, &[header], body, refused).await?;
            }
            // Requests without JSON are older than it.
            suite.expect("GET /?restype=service&comp=properties", &[header], "", (200, "")).await?;
            let missing = format!("DELETE /{table}(PartitionKey='p',RowKey='none')");
            suite.expect(&missing, &[header, "If-Match: *"], "", (404, "ResourceNotFound")).await
        });
    }
    choice!(suite, "2.2 MaxDataServiceVersion allows what DataServiceVersion does not", {
        let headers = ["DataServiceVersion: 1.0;NetFx", "MaxDataServiceVersion: 3.0;NetFx"];
        suite.expect(&format!("GET /{table}()?$select=a"), &headers, "", (200, "")).await
    });
    choice!(suite, "2.2 $select of an entity with DataServiceVersion 1.0", {
        let line = format!("GET /{path}?$select=a,b");
        suite.expect(&line, &["DataServiceVersion: 1.0"], "", (400, "InvalidInput")).await
    });
}

/// Content-MD5.
async fn checksums(suite: &mut Suite, table: &str) {
    let entity = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    let (of_entity, of_nothing) = ("Content-MD5: 2VJhdZUhREIjY0yGA9BE7g==", "Content-MD5: 1B2M2Y8AsgTpgAmY7PhCfg==");
    let delete = format!("DELETE /{table}(PartitionKey='p',RowKey='r')");
    let get = format!("GET /{table}()");
    let insert = format!("POST /{table}");
    suite.ask(&delete, &["If-Match: *"], "").await;
    choice!(suite, "2.3 every body is compared with its checksum, an empty one, too", {
        let properties = "PUT /?restype=service&comp=properties";
        for (line, header, body, expected) in [
            (&*insert, of_nothing, entity, (400, "Md5Mismatch")),
            (&insert, "Content-MD5: nonsense", entity, (400, "InvalidMd5")),
            (&insert, "Content-MD5: 1B2M2Y8AsgTpgAmY7PhC", entity, (400, "InvalidMd5")),
            (&insert, of_entity, entity, (201, "")),
            (&get, of_nothing, "", (200, "")),
            (&get, of_entity, "", (400, "Md5Mismatch")),
            (properties, of_nothing, "<StorageServiceProperties />", (400, "Md5Mismatch")),
        ] {
            suite.expect(line, &[header], body, expected).await?;
        }
        Ok(())
    });
}
