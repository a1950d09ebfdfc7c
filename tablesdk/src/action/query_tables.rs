//! `tables`: Query Tables.

use std::sync::Arc;

use futures_util::TryStreamExt as _;
use tablesdk_protocol::continuation::EntityContinuation;
use tablesdk_protocol::filter::ComparisonOperator::{GreaterThanOrEqual, LessThan};
use tablesdk_protocol::filter::Filter;
use tablesdk_protocol::limits::PAGE_ITEMS_MAX;
use tablesdk_protocol::operation::query_tables::{Request, Response};

use crate::action::refusal::{check_url, refused};
use crate::error::Error;
use crate::filter::starting_with;
use crate::pipeline::{Effect, PagedOperation, PipelineHandle};
use crate::query::{Continuations, EntityStream, Page, PageToken, Pages, fingerprint, of_token};

/// Lists tables. See [`TableServiceClient::tables`](crate::TableServiceClient::tables).
///
/// ```
#[doc = include_str!("../docs/employees.md")]
/// use futures::TryStreamExt;
///
/// for name in ["Logs2023", "Logs2024"] {
///     service.table(name).create_table().await?;
/// }
/// let mut logs = service.tables().starting_with("Logs").page_size(1).stream();
/// while let Some(name) = logs.try_next().await? {
///     service.table(name).delete_table().await?;
/// }
/// assert_eq!(service.tables().collect().await?, ["Employees"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a query does nothing until it is read"]
pub struct QueryTables {
    pipeline: PipelineHandle,
    prefix: String,
    pages: Pages,
}

impl QueryTables {
    pub(crate) fn new(pipeline: PipelineHandle) -> Self {
        Self {
            pipeline,
            prefix: String::new(),
            pages: Pages::default(),
        }
    }

    /// Lists only tables whose name starts with this string, in the case in which they were
    /// created.
    pub fn starting_with(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// How many tables to ask for in one request: from 1 to 1,000, the maximum of the service. It
    /// does not limit the list: more tables follow in the next request.
    pub fn page_size(mut self, tables: usize) -> Self {
        self.pages.page_size = Some(tables);
        self
    }

    /// The names of the tables, ordered without regard to case. The first error ends the stream; it
    /// is one of [`collect`](Self::collect).
    pub fn stream(self) -> EntityStream<String> {
        if let Err(error) = self.check() {
            return EntityStream::failed(self.pipeline.locate(error));
        }
        let pages = self.pages;
        let query = Arc::new((self, Scan::new()));
        EntityStream::follow(pages, move |top, next| {
            let query = Arc::clone(&query);
            async move {
                let (query, scan) = &*query;
                let (names, next) = query.fetch(top, next, scan).await?;
                if next.is_none() {
                    scan.operation.end(None);
                }
                Ok((names.into_iter().map(Ok).collect(), next))
            }
        })
    }

    /// The names of all tables at once.
    ///
    /// # Errors
    ///
    /// The errors of the service, such as `AuthenticationFailed`.
    pub async fn collect(self) -> Result<Vec<String>, Error> {
        self.stream().try_collect().await
    }

    /// Reads one page of the list, from its start or from the end of another page. A page may be
    /// empty without being the last one.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = tablesdk_server::TableServer::start().await?;
    /// # let service = tablesdk::TableServiceClient::from_connection_string(&server.connection_string())?;
    /// # for name in ["log1", "log2", "log3"] {
    /// #     service.table(name).create_table().await?;
    /// # }
    /// let logs = service.tables().starting_with("log").page_size(2);
    /// let page = logs.clone().page(None).await?;
    /// assert_eq!(page.items, ["log1", "log2"]);
    /// let token = page.next.expect("there is more").to_string();
    ///
    /// let page = logs.page(Some(token.parse()?)).await?;
    /// assert_eq!(page.items, ["log3"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) for the token of another query, and those of
    /// the service.
    pub async fn page(self, token: Option<PageToken>) -> Result<Page<String>, Error> {
        let pipeline = self.pipeline.clone();
        pipeline.located(Box::pin(self.page_at(token))).await
    }

    async fn page_at(self, token: Option<PageToken>) -> Result<Page<String>, Error> {
        self.check()?;
        let query = fingerprint([TABLES, &self.prefix]);
        let next = token
            .map(|token| token.into_continuation(query))
            .transpose();
        let next = next.map_err(|error| refused(OPERATION, error))?;
        let next = next.map(|continuation| continuation.next_partition_key);
        let scan = Scan::new();
        let is_of_token = next.is_some();
        let (items, next) = match Box::pin(self.fetch(self.pages.page_size, next, &scan)).await {
            Err(error) if is_of_token => return Err(of_token(error)),
            page => page?,
        };
        let next = next.map(|name| EntityContinuation {
            next_partition_key: name,
            next_row_key: None,
        });
        Ok(Page {
            items,
            next: next.map(|continuation| PageToken::new(query, continuation)),
        })
    }

    /// As [`page`](Self::page), with the token as a string. Without a token, or with an empty one
    /// (`?next=`), the page is the first one.
    ///
    /// # Errors
    ///
    /// As [`page`](Self::page); and [`ErrorKind::Input`](crate::ErrorKind::Input) when the string
    /// is not a page token.
    pub async fn page_after(self, token: Option<&str>) -> Result<Page<String>, Error> {
        let token = PageToken::optional(token);
        let token = token.map_err(|error| refused(OPERATION, error))?;
        self.page(token).await
    }

    fn check(&self) -> Result<(), Error> {
        match self.pages.page_size {
            Some(size) if !(1..=PAGE_ITEMS_MAX).contains(&size) => {
                Err(refused(OPERATION, PageSize { size }))
            }
            _ => Ok(()),
        }
    }

    async fn fetch(
        &self,
        top: Option<usize>,
        next_table_name: Option<String>,
        scan: &Scan,
    ) -> Result<(Vec<String>, Option<String>), Error> {
        let filter = if self.prefix.is_empty() {
            None
        } else {
            Some(if self.pipeline.has_plain_table_names() {
                // No character of a name is greater than `z`, in whatever case it is compared.
                let end = format!("{}{{", self.prefix);
                let start = Filter::comparison(NAME, GreaterThanOrEqual, self.prefix.as_str());
                start.and(Filter::comparison(NAME, LessThan, end))
            } else {
                starting_with(NAME, &self.prefix)
            })
        };
        let sent = next_table_name.clone();
        let request = Request {
            filter,
            top,
            next_table_name,
            ..Request::default()
        };
        let pipeline = &self.pipeline;
        check_url(OPERATION, request.url_bytes(&pipeline.endpoint))?;
        let request = request.encode(&pipeline.endpoint);
        let mut run = pipeline.resume(OPERATION, &scan.operation);
        let response = run.send(Effect::Read, &request).await;
        let page = response.and_then(|response| {
            let page = Response::decode(&response);
            let page = page.map_err(|error| run.annotate(Error::response(error)))?;
            let next = page.next_table_name.as_ref();
            let advanced = scan.continuations.advance(sent.as_ref(), next);
            advanced.map_err(|error| run.annotate(Error::response(error)))?;
            run.report().pages += 1;
            Ok(page)
        });
        let mut page = run.pause(&scan.operation, page)?;
        // Azure Table storage compares without regard to case, and the other services do not.
        page.names.retain(|name| name.starts_with(&self.prefix));
        Ok((page.names, page.next_table_name))
    }
}

call_options!(impl[] QueryTables, pipeline);

/// The operation of a list, which all its pages share.
struct Scan {
    operation: PagedOperation,
    continuations: Continuations<String>,
}

impl Scan {
    fn new() -> Self {
        Self {
            operation: PagedOperation::default(),
            continuations: Continuations::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("a page has 1 to {PAGE_ITEMS_MAX} tables, not {size}")]
struct PageSize {
    size: usize,
}

const OPERATION: &str = "query tables";
/// Distinguishes its tokens from those of every table: no table has this name.
const TABLES: &str = "Tables";
/// The property of a table that filters compare.
const NAME: &str = "TableName";
