//! Account SAS and table SAS: sections 3.8 to 3.10.

use crate::batch::{MULTIPART, batch_of, part};
use crate::client::Credential;
use crate::run::{Suite, choice, refused, rule, same};

const UNTIL: (&str, &str) = ("se", "2099-01-01T00:00:00Z");
const VERSION: (&str, &str) = ("sv", "2019-02-02");

fn account_fields<'a>(types: &'a str, permissions: &'a str) -> [(&'a str, &'a str); 5] {
    [VERSION, ("ss", "t"), ("srt", types), ("sp", permissions), UNTIL]
}

pub(crate) async fn check(suite: &mut Suite) {
    account_sas(suite).await;
    table_sas(suite).await;
    key_ranges(suite).await;
    stored_policies(suite).await;
    what_does_not_hold(suite).await;
}

/// All entities with their ETags.
async fn state(suite: &Suite, table: &str) -> String {
    suite.ask(&format!("GET /{table}()"), &[], "").await.body
}

async fn account_sas(suite: &mut Suite) {
    let table = suite.table().await;
    let name = suite.name();
    let entity = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    let create = format!(r#"{{"TableName":"{name}"}}"#);
    let any: &[&str] = &["If-Match: *"];
    let path = format!("/{table}(PartitionKey='p',RowKey='r')");
    suite.insert(&table, r#""PartitionKey":"p","RowKey":"r""#).await.unwrap();
    let all = "rwdlacu";
    for types in ["s", "o", "so"] {
        rule!(suite, &format!("F.13 a list of tables needs the type of containers, and not {types}"), {
            let sas = suite.account_sas(&account_fields(types, all));
            refused(&suite.ask_with(&sas, "GET /Tables", &[], "").await, 403, "AuthorizationResourceTypeMismatch")
        });
    }
    // The operation, the types of resource that allow it, and the permissions that do, each set by
    // itself.
    for (rule, line, headers, body, types, permissions) in [
        ("Get Service Properties", "GET /?restype=service&comp=properties".to_owned(), &[][..], "", "s", &["r"][..]),
        ("Set Service Properties", "PUT /?restype=service&comp=properties".to_owned(), &[], "<StorageServiceProperties />", "s", &["w"]),
        ("Query Tables", "GET /Tables".to_owned(), &[], "", "c", &["l"]),
        ("Query Tables with a name", format!("GET /Tables('{table}')"), &[], "", "c", &["l"]),
        ("Create Table", "POST /Tables".to_owned(), &[], &create, "c", &["c", "w"]),
        ("Delete Table", format!("DELETE /Tables('{name}')"), &[], "", "c", &["d"]),
        ("Query Entities", format!("GET /{table}()"), &[], "", "o", &["r"]),
        ("Query Entities with keys", format!("GET {path}"), &[], "", "o", &["r"]),
        ("Insert Or Replace Entity", format!("PUT {path}"), &[], "{}", "o", &["au"]),
        ("Insert Or Merge Entity", format!("MERGE {path}"), &[], "{}", "o", &["au"]),
        ("Update Entity", format!("PUT {path}"), any, "{}", "o", &["u"]),
        ("Merge Entity", format!("MERGE {path}"), any, "{}", "o", &["u"]),
        ("Delete Entity", format!("DELETE {path}"), any, "", "o", &["d"]),
        ("Insert Entity", format!("POST /{table}"), &[], entity, "o", &["a"]),
    ] {
        rule!(suite, &format!("3.8 {rule} lacks each other permission"), {
            let lacking: String = match permissions {
                ["au"] => "rwdlac".to_owned(),
                _ => all.chars().filter(|letter| !permissions.concat().contains(*letter)).collect(),
            };
            let sas = suite.account_sas(&account_fields("sco", &lacking));
            let before = state(suite, &table).await;
            refused(&suite.ask_with(&sas, &line, headers, body).await, 403, "AuthorizationPermissionMismatch")?;
            same("entities", &state(suite, &table).await, &before)
        });
        rule!(suite, &format!("3.8 {rule} lacks its type of resource"), {
            let others: String = "sco".chars().filter(|letter| !types.contains(*letter)).collect();
            let others = if types == "c" { "o".to_owned() } else { others };
            let sas = suite.account_sas(&account_fields(&others, all));
            refused(&suite.ask_with(&sas, &line, headers, body).await, 403, "AuthorizationResourceTypeMismatch")
        });
        for permissions in permissions {
            rule!(suite, &format!("3.8 {rule} by {permissions} on {types}"), {
                if rule == "Create Table" {
                    suite.ask(&format!("DELETE /Tables('{name}')"), &[], "").await;
                }
                let sas = suite.account_sas(&account_fields(types, permissions));
                let response = suite.ask_with(&sas, &line, headers, body).await;
                same("is allowed", &(response.status < 300), &true)
            });
        }
    }
    rule!(suite, "3.8 the signature of 2020-12-06 has a line more", {
        let mut fields = account_fields("sco", all);
        fields[0] = ("sv", "2020-12-06");
        same("status", &suite.ask_with(&suite.account_sas(&fields), "GET /Tables", &[], "").await.status, &200)
    });
    rule!(suite, "3.8 other services", {
        let mut fields = account_fields("sco", all);
        fields[1] = ("ss", "bq");
        let response = suite.ask_with(&suite.account_sas(&fields), "GET /Tables", &[], "").await;
        refused(&response, 403, "AuthorizationServiceMismatch")
    });
    rule!(suite, "3.8 policies are out of its reach", {
        let sas = suite.account_sas(&account_fields("sco", all));
        let response = suite.ask_with(&sas, &format!("GET /{table}?comp=acl"), &[], "").await;
        same("is refused", &[403, 404].contains(&response.status), &true)
    });
}

async fn table_sas(suite: &mut Suite) {
    let table = suite.table().await;
    let other = suite.table().await;
    suite.insert(&table, r#""PartitionKey":"p","RowKey":"r""#).await.unwrap();
    let path = format!("/{table}(PartitionKey='p',RowKey='r')");
    let entity = r#"{"PartitionKey":"p","RowKey":"r"}"#;
    let any: &[&str] = &["If-Match: *"];
    for (rule, line, headers, body, lacking, enough) in [
        ("Query Entities", format!("GET /{table}()"), &[][..], "", "aud", "r"),
        ("Query Entities with keys", format!("GET {path}"), &[], "", "aud", "r"),
        ("Insert Or Replace Entity", format!("PUT {path}"), &[], "{}", "rad", "au"),
        ("Insert Or Merge Entity", format!("PATCH {path}"), &[], "{}", "rud", "au"),
        ("Update Entity", format!("PUT {path}"), any, "{}", "rad", "u"),
        ("Insert Or Merge Entity, without updates", format!("MERGE {path}"), &[], "{}", "rad", "raud"),
        ("Merge Entity", format!("MERGE {path}"), any, "{}", "rad", "u"),
        ("Delete Entity", format!("DELETE {path}"), any, "", "rau", "d"),
        ("Insert Entity", format!("POST /{table}"), &[], entity, "rud", "a"),
    ] {
        let with = |permissions| [VERSION, ("tn", &*table), ("sp", permissions), UNTIL];
        rule!(suite, &format!("3.9 {rule} lacks a permission"), {
            let before = state(suite, &table).await;
            let response = suite.ask_with(&suite.table_sas(&with(lacking)), &line, headers, body).await;
            refused(&response, 403, "AuthorizationPermissionMismatch")?;
            same("entities", &state(suite, &table).await, &before)
        });
        rule!(suite, &format!("3.9 {rule} by {enough}"), {
            let response = suite.ask_with(&suite.table_sas(&with(enough)), &line, headers, body).await;
            same("is allowed", &(response.status < 300), &true)
        });
    }
    rule!(suite, "0.1, 3.9 the case of the table's name is no matter", {
        let upper = table.to_uppercase();
        let sas = suite.table_sas(&[VERSION, ("tn", &upper), ("sp", "r"), UNTIL]);
        for line in [format!("GET /{table}()"), format!("GET /{upper}()")] {
            same("status", &suite.ask_with(&sas, &line, &[], "").await.status, &200)?;
        }
        Ok(())
    });
    rule!(suite, "3.9 other tables, the list of them and their policies are out of its reach", {
        let sas = suite.table_sas(&[VERSION, ("tn", &table), ("sp", "raud"), UNTIL]);
        for line in [format!("GET /{other}()"), "GET /Tables".to_owned(), format!("DELETE /Tables('{table}')"), format!("GET /{table}?comp=acl")] {
            same(&line, &[403, 404].contains(&suite.ask_with(&sas, &line, &[], "").await.status), &true)?;
        }
        Ok(())
    });
    choice!(suite, "3.9 the code for what is out of its reach", {
        let sas = suite.table_sas(&[VERSION, ("tn", &table), ("sp", "raud"), UNTIL]);
        let outside = format!("/{other}(PartitionKey='p',RowKey='r')");
        for (line, body) in [
            ("GET /Tables", ""),
            (&*format!("GET /Tables('{table}')"), ""),
            ("POST /Tables", r#"{"TableName":"ConfMore"}"#),
            (&format!("DELETE /Tables('{table}')"), ""),
            ("GET /?restype=service&comp=properties", ""),
            ("PUT /?restype=service&comp=properties", "<StorageServiceProperties />"),
            (&format!("GET /{table}?comp=acl"), ""),
            (&format!("PUT /{table}?comp=acl"), "<SignedIdentifiers />"),
            (&format!("GET /{other}()"), ""),
            (&format!("GET {outside}"), ""),
            (&format!("POST /{other}"), entity),
            (&format!("PUT {outside}"), "{}"),
        ] {
            let response = suite.ask_with(&sas, line, &[], body).await;
            refused(&response, 403, "AuthorizationFailure").map_err(|why| format!("{line}: {why}"))?;
        }
        Ok(())
    });
    choice!(suite, "3.1 a signature in the URL replaces a header that is not valid", {
        let sas = suite.table_sas(&[VERSION, ("tn", &table), ("sp", "r"), UNTIL]);
        let expired = suite.table_sas(&[VERSION, ("tn", &table), ("sp", "r"), ("se", "2020-01-01")]);
        for header in ["SharedKey NAME:c2ln", "SharedKey unknown:c2ln", "Bearer x", "nothing"] {
            let header = format!("Authorization: {}", header.replace("NAME", &suite.account.name));
            for (sas, table, status) in [(&sas, &table, 200), (&sas, &other, 403), (&expired, &table, 403)] {
                let response = suite.ask_with(sas, &format!("GET /{table}()"), &[&header], "").await;
                let status = if status == 403 && header.ends_with("nothing") && sas == &expired { 400 } else { status };
                same(&header, &response.status, &status)?;
            }
        }
        Ok(())
    });
    choice!(suite, "2.1 the version is that of the header, the option, or the signature", {
        let sas = suite.table_sas(&[VERSION, ("tn", &table), ("sp", "r"), UNTIL]);
        let option = format!("GET {}/{table}()?api-version=2018-03-28&{sas}", suite.account.path);
        let plain = format!("GET {}/{table}()?{sas}", suite.account.path);
        for (line, header, version) in [(&plain, "", "2019-02-02"), (&option, "", "2018-03-28"), (&option, "x-ms-version: 2020-12-06\r\n", "2020-12-06")] {
            let host = &suite.account.authority;
            let response = suite.account.exchange(&format!("{line} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{header}\r\n")).await;
            same(header, &response.header("x-ms-version"), &Some(version))?;
        }
        Ok(())
    });
    choice!(suite, "3.10 a signature reads from the secondary and does not write to it", {
        let sas = suite.table_sas(&[VERSION, ("tn", &table), ("sp", "raud"), UNTIL]);
        let of_service = suite.account_sas(&account_fields("s", "r"));
        let secondary = format!("{}-secondary", suite.account.path);
        for (method, target, status, code) in [
            ("GET", format!("{secondary}/{table}()?{sas}"), 200, ""),
            ("POST", format!("{secondary}/{table}?{sas}"), 403, "InsufficientAccountPermissions"),
            ("GET", format!("{secondary}/?restype=service&comp=stats&{of_service}"), 200, ""),
        ] {
            let body = if method == "POST" { entity } else { "" };
            let response = suite.account.send_to(Credential::None, method, &target, &[], body).await;
            refused(&response, status, code)?;
        }
        Ok(())
    });
    rule!(suite, "3.1 a header counts, and not the signature in the URL", {
        let sas = suite.table_sas(&[VERSION, ("tn", &other), ("sp", "r"), UNTIL]);
        let line = format!("GET /{table}()?{sas}");
        same("status", &suite.account.send(Credential::SharedKey, &line, &[], "").await.status, &200)
    });
    rule!(suite, "3.9 every change of a batch is looked at", {
        let url = suite.account.url();
        let put = |headers: &str| {
            let put = format!("PUT {url}{path} HTTP/1.1\r\nContent-Type: application/json\r\n{headers}\r\n{{}}");
            batch_of(&part("changeset_1", &put))
        };
        let sas = suite.table_sas(&[VERSION, ("tn", &table), ("sp", "u"), UNTIL]);
        let upsert = suite.ask_with(&sas, "POST /$batch", &[MULTIPART], &put("")).await;
        same("an upsert is refused", &(upsert.status == 403 || upsert.body.contains(" 403 ")), &true)?;
        let update = suite.ask_with(&sas, "POST /$batch", &[MULTIPART], &put("If-Match: *\r\n")).await;
        same("an update is not", &(update.status, update.body.contains(" 204 ")), &(202, true))
    });
}

async fn key_ranges(suite: &mut Suite) {
    let table = suite.table().await;
    for (partition, row) in [("A", "1"), ("B", "1"), ("B", "2"), ("C", "1"), ("D", "1"), ("D", "2")] {
        suite.insert(&table, &format!(r#""PartitionKey":"{partition}","RowKey":"{row}""#)).await.unwrap();
    }
    for (range, expected) in [
        (&[("spk", "B")][..], "B1 B2 C1 D1 D2"),
        (&[("epk", "B")], "A1 B1 B2"),
        (&[("spk", "B"), ("srk", "2")], "B2 C1 D1 D2"),
        (&[("epk", "D"), ("erk", "1")], "A1 B1 B2 C1 D1"),
        (&[("spk", "B"), ("srk", "2"), ("epk", "D"), ("erk", "1")], "B2 C1 D1"),
        (&[("spk", "C"), ("epk", "C")], "C1"),
        (&[("spk", "E")], ""),
        (&[("spk", "D"), ("epk", "B")], ""),
    ] {
        let fields = [&[VERSION, ("tn", &*table), ("sp", "raud"), UNTIL], range].concat();
        rule!(suite, &format!("3.9 {range:?} limits a query"), {
            let response = suite.ask_with(&suite.table_sas(&fields), &format!("GET /{table}()"), &[], "").await;
            let json = response.json();
            let rows = json["value"].as_array().cloned().unwrap_or_default();
            let found: Vec<_> = rows.iter().map(|row| format!("{}{}", row["PartitionKey"].as_str().unwrap(), row["RowKey"].as_str().unwrap())).collect();
            same("rows", &found.join(" "), &expected)
        });
        rule!(suite, &format!("0.1, 3.9 {range:?} hides and protects what is outside"), {
            let sas = suite.table_sas(&fields);
            for key in ["A1", "B1", "B2", "C1", "D1", "D2"] {
                let (partition, row) = key.split_at(1);
                let path = format!("/{table}(PartitionKey='{partition}',RowKey='{row}')");
                let get = suite.ask_with(&sas, &format!("GET {path}"), &[], "").await;
                let put = suite.ask_with(&sas, &format!("PUT {path}"), &["If-Match: *"], "{}").await;
                if expected.contains(key) {
                    same(key, &(get.status, put.status), &(200, 204))?;
                } else {
                    refused(&get, 404, "ResourceNotFound")?;
                    refused(&put, 403, "AuthorizationFailure")?;
                }
            }
            Ok(())
        });
    }
    let range = [VERSION, ("tn", &*table), ("sp", "raud"), UNTIL, ("spk", "B"), ("srk", "2"), ("epk", "D"), ("erk", "1")];
    choice!(suite, "3.9 pages, filters and tokens stay in the range", {
        let sas = suite.table_sas(&range);
        for (options, count, continues) in [
            ("$top=2", 2, true),
            ("$top=3", 3, false),
            ("$filter=PartitionKey%20eq%20'D'", 1, false),
            ("$filter=not%20(PartitionKey%20eq%20'C')", 2, false),
            ("NextPartitionKey=1!4!QQ--", 3, false),
            ("NextPartitionKey=1!4!RQ--", 0, false),
        ] {
            let response = suite.ask_with(&sas, &format!("GET /{table}()?{options}"), &[], "").await;
            let token = response.header("x-ms-continuation-NextPartitionKey").is_some();
            let found = response.json()["value"].as_array().map(Vec::len);
            same(options, &(found, token), &(Some(count), continues))?;
        }
        Ok(())
    });
    choice!(suite, "3.9 no verb writes outside the range", {
        let sas = suite.table_sas(&range);
        let before = state(suite, &table).await;
        for (partition, row) in [("A", "1"), ("B", "1"), ("D", "2")] {
            let path = format!("/{table}(PartitionKey='{partition}',RowKey='{row}')");
            let entity = format!(r#"{{"PartitionKey":"{partition}","RowKey":"{row}"}}"#);
            for (line, headers, body) in [
                (format!("POST /{table}"), &[][..], &*entity),
                (format!("PUT {path}"), &[], "{}"),
                (format!("MERGE {path}"), &[], "{}"),
                (format!("DELETE {path}"), &["If-Match: *"], ""),
            ] {
                let response = suite.ask_with(&sas, &line, headers, body).await;
                refused(&response, 403, "AuthorizationFailure").map_err(|why| format!("{line}: {why}"))?;
            }
        }
        same("entities", &state(suite, &table).await, &before)?;
        let exists = suite.ask_with(&sas, &format!("POST /{table}"), &[], r#"{"PartitionKey":"C","RowKey":"1"}"#).await;
        refused(&exists, 409, "EntityAlreadyExists")?;
        let delete = suite.ask_with(&sas, &format!("DELETE /{table}(PartitionKey='B',RowKey='2')"), &["If-Match: *"], "").await;
        same("a delete inside", &delete.status, &204)
    });
    rule!(suite, "0.1, 3.9 an insert outside is refused", {
        let sas = suite.table_sas(&[VERSION, ("tn", &table), ("sp", "raud"), UNTIL, ("spk", "B"), ("epk", "B")]);
        let response = suite.ask_with(&sas, &format!("POST /{table}"), &[], r#"{"PartitionKey":"X","RowKey":"1"}"#).await;
        refused(&response, 403, "AuthorizationFailure")
    });
}

async fn stored_policies(suite: &mut Suite) {
    let table = suite.table().await;
    let line = format!("GET /{table}()");
    let policy = |id: &str, content: &str| format!("<SignedIdentifier><Id>{id}</Id><AccessPolicy>{content}</AccessPolicy></SignedIdentifier>");
    let policies = format!(
        "<SignedIdentifiers>{}{}{}{}{}</SignedIdentifiers>",
        policy("all", "<Expiry>2099-01-01T00:00:00Z</Expiry><Permission>r</Permission>"),
        policy("old", "<Expiry>2001-01-01T00:00:00Z</Expiry><Permission>r</Permission>"),
        policy("times", "<Expiry>2099-01-01T00:00:00Z</Expiry>"),
        policy("started", "<Start>2024-03-15</Start><Expiry>2099-01-01T00:00:00Z</Expiry><Permission>r</Permission>"),
        policy("later", "<Start>2098-01-01</Start><Expiry>2099-01-01T00:00:00Z</Expiry><Permission>r</Permission>"),
    );
    rule!(suite, "3.9 policies may leave out what they like", {
        let xml = ["Content-Type: application/xml"];
        suite.done(&format!("PUT /{table}?comp=acl"), &xml, &policies).await.map(drop)
    });
    for (rule, fields, status) in [
        ("all of it", &[("si", "all")][..], 200),
        ("what it lacks is in the URL", &[("si", "times"), ("sp", "r")], 200),
        ("it lacks a permission, and the URL, too", &[("si", "times")], 403),
        ("it has expired", &[("si", "old")], 403),
        ("there is none", &[("si", "none")], 403),
        ("both have a permission", &[("si", "all"), ("sp", "r")], 403),
        ("both have an expiry", &[("si", "times"), ("sp", "r"), UNTIL], 403),
        ("it has started", &[("si", "started")], 200),
        ("both have a start", &[("si", "started"), ("st", "2024-03-15")], 403),
        ("it has not started", &[("si", "later")], 403),
    ] {
        let fields = [&[VERSION, ("tn", &*table)], fields].concat();
        rule!(suite, &format!("3.9 a stored policy: {rule}"), {
            same("status", &suite.ask_with(&suite.table_sas(&fields), &line, &[], "").await.status, &status)
        });
    }
    choice!(suite, "3.9 stored policies that leave out permission, expiry, or all", {
        let policies = [policy("r", "<Permission>r</Permission>"), policy("nothing", ""), policy("a", "<Expiry>2099-01-01</Expiry><Permission>a</Permission>")];
        suite.done(&format!("PUT /{table}?comp=acl"), &["Content-Type: application/xml"], &format!("<SignedIdentifiers>{}</SignedIdentifiers>", policies.concat())).await?;
        for (fields, status, code) in [
            (&[("si", "r"), UNTIL][..], 200, ""),
            (&[("si", "r")], 403, "AuthenticationFailed"),
            (&[("si", "nothing"), ("sp", "r"), UNTIL], 200, ""),
            (&[("si", "a")], 403, "AuthorizationPermissionMismatch"),
            (&[("si", "none")], 403, "AuthenticationFailed"),
        ] {
            let sas = suite.table_sas(&[&[VERSION, ("tn", &*table)], fields].concat());
            refused(&suite.ask_with(&sas, &line, &[], "").await, status, code).map_err(|why| format!("{fields:?}: {why}"))?;
        }
        let of_missing = suite.table_sas(&[VERSION, ("tn", "ConfMissing"), ("si", "r"), UNTIL]);
        refused(&suite.ask_with(&of_missing, "GET /ConfMissing()", &[], "").await, 403, "AuthenticationFailed")
    });
    rule!(suite, "3.9 a policy that is gone ends its signatures", {
        suite.done(&format!("PUT /{table}?comp=acl"), &["Content-Type: application/xml"], "<SignedIdentifiers />").await?;
        let sas = suite.table_sas(&[VERSION, ("tn", &table), ("si", "all")]);
        same("status", &suite.ask_with(&sas, &line, &[], "").await.status, &403)
    });
}

async fn what_does_not_hold(suite: &mut Suite) {
    let table = suite.table().await;
    let line = format!("GET /{table}()");
    let good = [VERSION, ("tn", &*table), ("sp", "r"), UNTIL];
    for (rule, field, code) in [
        ("an expiry in the past", ("se", "2001-01-01T00:00:00Z"), "AuthenticationFailed"),
        ("a start in the future", ("st", "2098-01-01T00:00:00Z"), "AuthenticationFailed"),
        ("another address", ("sip", "203.0.113.7"), "AuthorizationSourceIPMismatch"),
        ("https alone", ("spr", "https"), "AuthorizationProtocolMismatch"),
    ] {
        let mut fields: Vec<_> = good.into_iter().filter(|(name, _)| *name != field.0).collect();
        fields.push(field);
        rule!(suite, &format!("3.10 {rule}"), {
            same("status", &suite.ask_with(&suite.table_sas(&fields), &line, &[], "").await.status, &403)
        });
        choice!(suite, &format!("3.10 the code for {rule}"), {
            refused(&suite.ask_with(&suite.table_sas(&fields), &line, &[], "").await, 403, code)
        });
    }
    rule!(suite, "3.10 this address, any protocol, a start in the past", {
        let fields = [&good[..], &[("sip", "127.0.0.0-127.0.0.2"), ("spr", "https,http"), ("st", "2001-01-01")]].concat();
        same("status", &suite.ask_with(&suite.table_sas(&fields), &line, &[], "").await.status, &200)
    });
    rule!(suite, "3.10 a signature of other fields", {
        let sas = suite.table_sas(&good).replace("sp=r", "sp=raud");
        same("status", &suite.ask_with(&sas, &line, &[], "").await.status, &403)
    });
    choice!(suite, "3.10 no part of a signature can be changed, added or left out", {
        let good = suite.account_sas(&account_fields("sco", "r"));
        for sas in [
            &*good.replace("sig=", "sig=A"),
            &good.replace("sig=", "sig=&x="),
            &good.replace("2019-02-02", "2020-12-06"),
            &good.replace("sv=", "vs="),
            &format!("{good}&sp=r"),
            &format!("{good}&spk=B"),
            "sig=x",
        ] {
            let response = suite.ask_with(sas, &line, &[], "").await;
            refused(&response, 403, "AuthenticationFailed").map_err(|why| format!("{sas}: {why}"))?;
            same("shows the signature", &response.body.contains("sig="), &false)?;
        }
        let other = format!("GET /unknown/Tables?{good}");
        refused(&suite.account.send_to(Credential::None, "GET", other.trim_start_matches("GET "), &[], "").await, 404, "ResourceNotFound")
    });
    choice!(suite, "3.8, 3.10 the order of the checks: time, address, protocol, service, type, permission", {
        let mut fields = vec![VERSION, ("ss", "b"), ("srt", "s"), ("sp", "w"), ("sip", "203.0.113.7"), ("spr", "https"), ("se", "2001-01-01")];
        for (field, code) in [
            (UNTIL, "AuthenticationFailed"),
            (("sip", "127.0.0.1"), "AuthorizationSourceIPMismatch"),
            (("spr", "https,http"), "AuthorizationProtocolMismatch"),
            (("ss", "bqtf"), "AuthorizationServiceMismatch"),
            (("srt", "o"), "AuthorizationResourceTypeMismatch"),
            (("sp", "r"), "AuthorizationPermissionMismatch"),
        ] {
            let response = suite.ask_with(&suite.account_sas(&fields), &line, &[], "").await;
            refused(&response, 403, code)?;
            let is_unauthenticated = !["AuthorizationResourceTypeMismatch", "AuthorizationPermissionMismatch"].contains(&code);
            same("header", &response.header("x-ms-error-code"), &is_unauthenticated.then_some(code))?;
            // With this field in order, the next check refuses.
            fields.retain(|(name, _)| *name != field.0);
            fields.push(field);
        }
        same("status", &suite.ask_with(&suite.account_sas(&fields), &line, &[], "").await.status, &200)
    });
}
