//! Runs the rules on each server under test, and collects the failures.

use std::any::Any;
use std::fmt::{Debug, Display};

use harness::postgres;
use serde_json::Value as Json;
use tablesdk_server::{Durability, TableServer};

use crate::client::{Account, Credential, Response};
use crate::sign::{account_sas, percent, table_sas};

pub(crate) const NO_METADATA: &str = "Accept: application/json;odata=nometadata";

/// The result of a rule, or of a step to it: an error describes the difference.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// Checks a rule: a block with [`Outcome`], in which the suite is shared.
macro_rules! rule {
    ($suite:ident, $rule:expr, $check:block) => {
        $crate::run::note!($suite, $rule, $check, false)
    };
}

/// Checks a choice: a rule for which the behaviour of the service is not certain.
macro_rules! choice {
    ($suite:ident, $rule:expr, $check:block) => {
        $crate::run::note!($suite, $rule, $check, true)
    };
}

macro_rules! note {
    ($suite:ident, $rule:expr, $check:block, $is_choice:expr) => {{
        let check = async || -> $crate::run::Outcome {
            let $suite = &*$suite;
            $check
        };
        let outcome = check().await;
        $suite.note($rule, outcome, $is_choice);
    }};
}

pub(crate) use {choice, note, rule};

/// Runs a module on each server under test. Panics with all failures.
pub(crate) async fn run(module: &str, check: impl AsyncFn(&mut Suite)) {
    let mut failed = Vec::new();
    if let Ok(text) = std::env::var("TABLESDK_CONFORMANCE_ENDPOINT") {
        let mut suite = Suite::new("the endpoint", Account::parse(&text), true);
        check(&mut suite).await;
        failed.extend(suite.finish(module).await);
    } else {
        for (name, _tables, server) in ours().await {
            let mut suite = Suite::new(name, Account::parse(&server.connection_string()), false);
            check(&mut suite).await;
            failed.extend(suite.finish(module).await);
        }
    }
    assert!(failed.is_empty(), "{}\n", failed.join("\n"));
}

/// Our server, once for each storage. The tables exist as long as the returned value.
async fn ours() -> Vec<(&'static str, Box<dyn Any>, TableServer)> {
    let memory = TableServer::start().await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let durable = TableServer::builder().data(directory.path(), Durability::Relaxed);
    let durable = durable.start().await.unwrap();
    let mut ours: Vec<(_, Box<dyn Any>, _)> = vec![
        ("memory", Box::new(()), memory),
        ("a directory", Box::new(directory), durable),
    ];
    if let Some(database) = postgres::database() {
        let shared = TableServer::builder().postgres(database.url());
        let shared = shared.start().await.unwrap();
        ours.push(("a database", Box::new(database), shared));
    }
    ours
}

/// One server under test, and the results of the rules.
pub(crate) struct Suite {
    subject: &'static str,
    pub(crate) account: Account,
    is_foreign: bool,
    tables: Vec<String>,
    rules: usize,
    failed: Vec<String>,
    /// Choices in which a foreign endpoint differs.
    others: Vec<String>,
}

/// A request and its outcome: the rule, request line, headers, body, and status and code of the
/// response. `TABLE` in the request line stands for the name of a table.
pub(crate) type Refusal<'a> = (&'a str, &'a str, &'a [&'a str], &'a str, u16, &'a str);

impl Suite {
    fn new(subject: &'static str, account: Account, is_foreign: bool) -> Self {
        Self {
            subject,
            account,
            is_foreign,
            tables: Vec::new(),
            rules: 0,
            failed: Vec::new(),
            others: Vec::new(),
        }
    }

    /// A new table.
    pub(crate) async fn table(&mut self) -> String {
        let name = self.name();
        let body = format!(r#"{{"TableName":"{name}"}}"#);
        let response = self.ask("POST /Tables", &[], &body).await;
        assert_eq!(response.status, 201, "{response:?}");
        name
    }

    /// The name of a table that does not exist. If it is created, it is deleted at the end.
    pub(crate) fn name(&mut self) -> String {
        let name = format!("Conf{:016x}", fastrand::u64(..));
        self.tables.push(name.clone());
        name
    }

    /// Notes the outcome of a rule, or of a choice: see [`rule!`] and [`choice!`].
    pub(crate) fn note(&mut self, rule: &str, outcome: Outcome, is_choice: bool) {
        self.rules += 1;
        if let Err(why) = outcome {
            let failed = format!("{rule}: {why}");
            if is_choice && self.is_foreign {
                self.others.push(failed);
            } else {
                self.failed.push(failed);
            }
        }
    }

    /// Checks the outcome of each of these requests.
    pub(crate) async fn refusals(&mut self, table: &str, refusals: &[Refusal<'_>]) {
        self.each(table, refusals, false).await;
    }

    /// As [`Self::refusals`], for rules that are choices.
    pub(crate) async fn refusals_by_choice(&mut self, table: &str, refusals: &[Refusal<'_>]) {
        self.each(table, refusals, true).await;
    }

    async fn each(&mut self, table: &str, refusals: &[Refusal<'_>], is_choice: bool) {
        for (rule, line, headers, body, status, code) in refusals {
            let line = line.replace("TABLE", table);
            let response = self.ask(&line, headers, body).await;
            self.note(rule, refused(&response, *status, code), is_choice);
        }
    }

    /// Sends a signed request and checks status and code of its response. The code of a success is
    /// empty.
    pub(crate) async fn expect(
        &self,
        line: &str,
        headers: &[&str],
        body: &str,
        (status, code): (u16, &str),
    ) -> Outcome {
        let response = self.ask(line, headers, body).await;
        refused(&response, status, code)
            .map_err(|why| format!("{line} {headers:?} {body:.60}: {why}"))
    }

    /// Sends a signed request.
    pub(crate) async fn ask(&self, line: &str, headers: &[&str], body: &str) -> Response {
        let credential = Credential::SharedKeyLite;
        self.account.send(credential, line, headers, body).await
    }

    /// Sends a request that is expected to succeed.
    pub(crate) async fn done(&self, line: &str, headers: &[&str], body: &str) -> Outcome<Response> {
        let response = self.ask(line, headers, body).await;
        if response.status < 300 {
            return Ok(response);
        }
        let (status, code) = (response.status, response.code());
        Err(format!(
            "{line} {body:.100} has the response {status} {code}"
        ))
    }

    /// Inserts an entity with these members; returns its ETag.
    pub(crate) async fn insert(&self, table: &str, members: &str) -> Outcome<String> {
        let body = format!("{{{members}}}");
        let (line, headers) = (format!("POST /{table}"), ["Prefer: return-no-content"]);
        let response = self.done(&line, &headers, &body).await?;
        let etag = response.header("ETag").ok_or("an insert has no ETag")?;
        Ok(etag.to_owned())
    }

    /// Reads an entity without metadata and timestamp.
    pub(crate) async fn entity(&self, table: &str, partition: &str, row: &str) -> Outcome<Json> {
        let line = format!("GET {}", entity_path(table, partition, row));
        let mut json = self.done(&line, &[NO_METADATA], "").await?.json();
        if let Some(members) = json.as_object_mut() {
            members.remove("Timestamp");
        }
        Ok(json)
    }

    /// The row keys of the results of a query, from all its pages.
    pub(crate) async fn rows(&self, table: &str, query: &str) -> Outcome<Vec<String>> {
        let mut rows = Vec::new();
        let mut next = String::new();
        loop {
            let line = format!("GET /{table}()?{query}{next}");
            let response = self.done(&line, &[NO_METADATA], "").await?;
            let json = response.json();
            let page = json["value"].as_array().ok_or("a page has no value")?;
            let keys = page.iter().map(|row| row["RowKey"].as_str().unwrap_or("-"));
            rows.extend(keys.map(str::to_owned));
            let Some(partition) = response.header("x-ms-continuation-NextPartitionKey") else {
                return Ok(rows);
            };
            next = format!("&NextPartitionKey={}", percent(partition));
            if let Some(row) = response.header("x-ms-continuation-NextRowKey") {
                next += &format!("&NextRowKey={}", percent(row));
            }
        }
    }

    /// Sends a request with a SAS in its URL and no other credential.
    pub(crate) async fn ask_with(
        &self,
        sas: &str,
        line: &str,
        headers: &[&str],
        body: &str,
    ) -> Response {
        let separator = if line.contains('?') { '&' } else { '?' };
        let (line, none) = (format!("{line}{separator}{sas}"), Credential::None);
        self.account.send(none, &line, headers, body).await
    }

    /// An account SAS with these fields.
    pub(crate) fn account_sas(&self, fields: &[(&str, &str)]) -> String {
        account_sas(&self.account.name, &self.account.key, fields)
    }

    /// A SAS of a table with these fields.
    pub(crate) fn table_sas(&self, fields: &[(&str, &str)]) -> String {
        table_sas(&self.account.name, &self.account.key, fields)
    }

    /// Deletes the tables, and returns the failures.
    async fn finish(mut self, module: &str) -> Vec<String> {
        for table in std::mem::take(&mut self.tables) {
            let line = format!("DELETE /Tables('{table}')");
            self.ask(&line, &[], "").await;
        }
        let in_context = |failed: &String| format!("  {module}, {failed}");
        for other in &self.others {
            println!("  otherwise: {module}, {other}");
        }
        let (subject, rules) = (self.subject, self.rules);
        let (failed, others) = (self.failed.len(), self.others.len());
        println!("{module} on {subject}: {rules} rules, {failed} failed, {others} otherwise");
        self.failed.iter().map(in_context).collect()
    }
}

/// The path of an entity.
pub(crate) fn entity_path(table: &str, partition: &str, row: &str) -> String {
    let [partition, row] = [partition, row].map(|key| percent(&key.replace('\'', "''")));
    format!("/{table}(PartitionKey='{partition}',RowKey='{row}')")
}

/// Checks status and code of a response.
pub(crate) fn refused(response: &Response, status: u16, code: &str) -> Outcome {
    let found = (response.status, response.code());
    same("response", &found, &(status, code.to_owned()))
}

/// Checks that two values are equal.
pub(crate) fn same<A: Debug + PartialEq<B>, B: Debug>(
    what: impl Display,
    found: &A,
    expected: &B,
) -> Outcome {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what}: found {found:?}, expected {expected:?}"))
}

/// Checks a condition.
pub(crate) fn holds(what: impl Display, holds: bool) -> Outcome {
    if holds { Ok(()) } else { Err(what.to_string()) }
}
