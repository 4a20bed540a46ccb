//! Whether a node is ready, by the health service that any node serves, the directory too.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::protocol::ids::Address;

use super::ClientError;
use super::error::Trouble;
use super::line::{failed, unreachable};
use super::roster::Roster;

const WITHIN: Duration = Duration::from_millis(1_500);

/// Asks all nodes at once. Names one that is ready, or else one that answers but is not.
///
/// # Errors
/// No node answers.
pub async fn health(nodes: Vec<Address>) -> Result<(Address, bool), ClientError> {
    let mut attempts: JoinSet<_> = nodes.iter().cloned().map(check).collect();
    let mut unready = None;
    let mut last = String::new();
    while let Some(attempt) = attempts.join_next().await {
        match attempt {
            Ok(Ok((node, true))) => return Ok((node, true)),
            Ok(Ok((node, false))) => unready = Some((node, false)),
            Ok(Err(Trouble::Elsewhere(why) | Trouble::Full(why, _))) => last = why,
            Ok(Err(Trouble::Final(error))) => last = error.to_string(),
            Err(error) => last = error.to_string(),
        }
    }
    unready.ok_or_else(|| ClientError::Unreachable { tried: Roster::new(nodes).shown(), last })
}

async fn check(node: Address) -> Result<(Address, bool), Trouble> {
    let asking = async {
        let endpoint = Endpoint::from_shared(format!("http://{node}")).map_err(|error| unreachable(&error))?;
        let channel = endpoint.connect().await.map_err(|error| unreachable(&error))?;
        let answer = HealthClient::new(channel).check(HealthCheckRequest::default()).await.map_err(failed)?;
        Ok::<bool, Trouble>(answer.into_inner().status() == ServingStatus::Serving)
    };
    let is_ready = timeout(WITHIN, asking).await.map_err(|_| Trouble::Elsewhere("no answer in time".to_owned()))??;
    Ok((node, is_ready))
}
