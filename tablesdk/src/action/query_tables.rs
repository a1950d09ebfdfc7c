//! `tables`: Query Tables.

use std::sync::Arc;

use futures_util::TryStreamExt as _;
use tablesdk_protocol::operation::query_tables::{Request, Response};

use super::check_url;
use crate::Error;
use crate::pipeline::{Effect, Pipeline};
use crate::query::{Column, EntityStream, Pages};

/// Lists tables. See [`TableServiceClient::tables`](crate::TableServiceClient::tables).
#[derive(Clone, Debug)]
#[must_use = "a query does nothing until it is read"]
pub struct QueryTables {
    pipeline: Arc<Pipeline>,
    prefix: String,
}

impl QueryTables {
    pub(crate) const fn new(pipeline: Arc<Pipeline>) -> Self {
        Self {
            pipeline,
            prefix: String::new(),
        }
    }

    /// Lists only tables whose name starts with this text, in the case in which they were created.
    pub fn starting_with(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// The names of the tables, ordered without regard to case.
    pub fn stream(self) -> EntityStream<String> {
        let Self { pipeline, prefix } = self;
        EntityStream::follow(Pages::default(), move |top, next_table_name| {
            let pipeline = Arc::clone(&pipeline);
            let prefix = prefix.clone();
            async move {
                let filter = if prefix.is_empty() {
                    None
                } else {
                    let name = Column::<(), String>::new("TableName");
                    Some(
                        name.starts_with(&prefix)
                            .into_tree()
                            .map_err(|error| Error::input(error).with_operation(OPERATION))?,
                    )
                };
                let request = Request {
                    filter,
                    top,
                    next_table_name,
                    ..Request::default()
                };
                check_url(OPERATION, request.url_bytes(&pipeline.endpoint))?;
                let request = request.encode(&pipeline.endpoint);
                let answer = pipeline.send(OPERATION, Effect::Read, &request).await?;
                let page = Response::decode(&answer.response)
                    .map_err(|error| Error::response(error).with_operation(OPERATION))?;
                Ok((page.names, page.next_table_name))
            }
        })
    }

    /// The names of all tables at once.
    ///
    /// # Errors
    ///
    /// Those of the service, such as `AuthenticationFailed`.
    pub async fn collect(self) -> Result<Vec<String>, Error> {
        self.stream().try_collect().await
    }
}

const OPERATION: &str = "query tables";
