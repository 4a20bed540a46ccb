//! A collector in this process: takes spans by OTLP, and waits for those that a test expects.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;
use tonic::{Request, Response, Status};

use crate::nodes::PATIENCE;

/// A span as a test looks at it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Span {
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: String,
    pub(crate) name: String,
    pub(crate) instance: String,
    pub(crate) failed: bool,
    /// Traces that it is linked to.
    pub(crate) links: Vec<String>,
    attributes: BTreeMap<String, String>,
}

impl Span {
    /// An attribute, by the last part of its key.
    pub(crate) fn get(&self, key: &str) -> &str {
        self.attributes.get(&format!("floodline.{key}")).map_or("", String::as_str)
    }
}

/// The collector. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Collector {
    spans: Arc<Mutex<Vec<Span>>>,
    arrived: watch::Sender<usize>,
}

impl Collector {
    /// Starts one; gives the variable that sends a node's spans there.
    pub(crate) async fn start() -> (Collector, String) {
        let collector = Collector { spans: Arc::default(), arrived: watch::Sender::new(0) };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let incoming = tonic::transport::server::TcpIncoming::from(listener);
        let service = TraceServiceServer::new(collector.clone());
        tokio::spawn(tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming));
        (collector, format!("OTEL_EXPORTER_OTLP_ENDPOINT=http://{address}"))
    }

    /// Waits until `find` finds something among all spans that have come.
    pub(crate) async fn until<T>(&self, what: &str, find: impl Fn(&[Span]) -> Option<T>) -> T {
        let mut arrived = self.arrived.subscribe();
        let found = timeout(PATIENCE, async {
            loop {
                arrived.borrow_and_update();
                if let Some(found) = find(&self.spans.lock().expect("nobody panicked")) {
                    return found;
                }
                arrived.changed().await.expect("it lives as long");
            }
        });
        found.await.unwrap_or_else(|_| {
            let came = self.spans.lock().expect("nobody panicked").clone();
            panic!("{what} does not come; what came: {came:#?}")
        })
    }
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let mut come = Vec::new();
        for resource in request.into_inner().resource_spans {
            let of = resource.resource.unwrap_or_default().attributes.into_iter();
            let instance = of.filter(|it| it.key == "service.instance.id").map(|it| text(it.value)).collect::<String>();
            for span in resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
                come.push(Span {
                    trace: hex(&span.trace_id),
                    id: hex(&span.span_id),
                    parent: hex(&span.parent_span_id),
                    name: span.name,
                    instance: instance.clone(),
                    failed: span.status.is_some_and(|status| status.code() == StatusCode::Error),
                    links: span.links.iter().map(|link| hex(&link.trace_id)).collect(),
                    attributes: span.attributes.into_iter().map(|it| (it.key, text(it.value))).collect(),
                });
            }
        }
        self.spans.lock().expect("nobody panicked").extend(come);
        self.arrived.send_modify(|arrived| *arrived += 1);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text(value: Option<opentelemetry_proto::tonic::common::v1::AnyValue>) -> String {
    match value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        Some(Value::BoolValue(it)) => it.to_string(),
        Some(Value::IntValue(it)) => it.to_string(),
        other => format!("{other:?}"),
    }
}
