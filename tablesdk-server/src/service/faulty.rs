//! Requests into which a test injects faults: whether and when they are carried out, and what their
//! clients get.
//!
//! The fault itself decides what becomes of the response that this module returns.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use tablesdk_protocol::ServiceError;
use tablesdk_protocol::operation::Operation;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::Service;
use super::handler::{Handled, handle};
use crate::engine::Engine;
use crate::request::auth::Principal;
use crate::request::context::Context;
use crate::testing::{Application, Cleared, Detached, InFlight, Observed, Reaction};
use crate::time::time_limit::{Timer, within};

/// Carries out a request with its fault, if it has one. Returns the response as it would be without
/// the fault, an injected error, or an empty response that is not sent.
pub(super) async fn carry_out(
    service: &Service,
    context: &Context,
    principal: &Principal,
    operation: &Operation,
    observed: &mut Observed,
) -> Handled {
    let Some((application, reaction, cleared)) = observed.fault() else {
        return Ok(once(service, context, principal, operation).await?);
    };
    let mut waiting = Waiting(cleared, observed.in_flight());
    let handled = match application {
        Application::Never => None,
        Application::Once => {
            let result = once(service, context, principal, operation).await;
            if matches!(reaction, Reaction::Error { .. }) {
                observed
                    .detached()
                    .carried_out(&result, service.clock.now());
            } else {
                observed.carried_out(&result);
            }
            Some(result)
        }
        Application::Twice => {
            let first = once(service, context, principal, operation).await;
            observed.detached().carried_out(&first, service.clock.now());
            Some(once(service, context, principal, operation).await)
        }
        Application::Again(delay) => {
            let handled = once(service, context, principal, operation).await;
            later(
                service,
                context,
                principal,
                operation,
                delay,
                observed.detached(),
            );
            Some(handled)
        }
        Application::After(delay) if matches!(reaction, Reaction::Response(_)) => {
            let waiting = waiting.clone();
            let delayed = delayed(
                service, context, principal, operation, delay, observed, waiting,
            );
            let result = delayed.await;
            if result.is_none() {
                observed.is_dropped();
            }
            result
        }
        Application::After(delay) => {
            let detached = observed.detached();
            later(service, context, principal, operation, delay, detached);
            None
        }
    };
    match reaction {
        Reaction::Response(delay) => {
            waiting.pause(delay).await;
        }
        Reaction::Error { code, .. } => return Err(code.into()),
        Reaction::Silence => waiting.until_ended().await,
        Reaction::Corrupted | Reaction::Reset | Reaction::Truncated(_) => {}
    }
    match handled {
        Some(result) => Ok(result?),
        None => {
            observed.has_no_response();
            Ok(Response::default())
        }
    }
}

async fn once(
    service: &Service,
    context: &Context,
    principal: &Principal,
    operation: &Operation,
) -> Result<Response<Bytes>, ServiceError> {
    within_limit(
        &service.engine,
        service.timer,
        context,
        principal,
        operation,
    )
    .await
}

async fn within_limit(
    engine: &Arc<Engine>,
    timer: Timer,
    context: &Context,
    principal: &Principal,
    operation: &Operation,
) -> Result<Response<Bytes>, ServiceError> {
    let handled = pin!(handle(engine, context, principal, operation));
    let handled = within(context.timeout, timer, Instant::now(), handled).await;
    handled.map_err(|error| error.report(context))
}

/// Carries out an operation after a delay, whether its client still waits or not. `None` if the
/// server is reset before.
async fn delayed(
    service: &Service,
    context: &Context,
    principal: &Principal,
    operation: &Operation,
    delay: Duration,
    observed: &Observed,
    mut waiting: Waiting,
) -> Option<Result<Response<Bytes>, ServiceError>> {
    let (clock, engine) = (Arc::clone(&service.clock), Arc::clone(&service.engine));
    let (context, principal, operation) = (context.clone(), principal.clone(), operation.clone());
    let (timer, detached) = (service.timer, observed.detached());
    let (sender, result) = oneshot::channel();
    // The client may give up, and then the future of its request is dropped.
    let carried_out = async move {
        if !waiting.pause(delay).await {
            return;
        }
        let result = within_limit(&engine, timer, &context, &principal, &operation).await;
        if let Err(result) = sender.send(result) {
            detached.carried_out(&result, clock.now());
        }
    };
    tokio::spawn(carried_out.in_current_span());
    result.await.ok()
}

/// Carries out an operation after its client has got a response or none, unless the server is reset
/// before.
fn later(
    service: &Service,
    context: &Context,
    principal: &Principal,
    operation: &Operation,
    delay: Duration,
    mut detached: Detached,
) {
    let (clock, engine) = (Arc::clone(&service.clock), Arc::clone(&service.engine));
    let (context, principal, operation) = (context.clone(), principal.clone(), operation.clone());
    tokio::spawn(async move {
        tokio::select! {
            biased;
            () = detached.drained() => return,
            () = tokio::time::sleep(delay) => {}
        }
        let handled = handle(&engine, &context, &principal, &operation).await;
        let handled = handled.map_err(|error| error.report(&context));
        detached.carried_out(&handled, clock.now());
    });
}

/// The waits of a fault. They end when the rules are cleared, or the server is reset.
#[derive(Clone)]
struct Waiting(Cleared, InFlight);

impl Waiting {
    /// Waits for so long. Returns whether the request goes on.
    async fn pause(&mut self, delay: Duration) -> bool {
        if delay.is_zero() {
            return true;
        }
        tokio::select! {
            biased;
            goes_on = self.1.drained() => goes_on,
            () = self.0.wait() => true,
            () = tokio::time::sleep(delay) => true,
        }
    }

    async fn until_ended(&mut self) {
        tokio::select! {
            () = self.0.wait() => {}
            _ = self.1.drained() => {}
        }
    }
}
