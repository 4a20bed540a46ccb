//! Spans on their way to a collector: OTLP over gRPC, as the standard OTEL_* variables say.
//!
//! Owns the exporter and its bounds: at most [`QUEUE`] spans wait, a batch is given up after [`GIVE_UP`], and what does
//! not fit or does not get there is counted. So a collector that is absent, slow or silent costs this and nothing else.
//! Off unless an endpoint is set.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry::trace::TracerProvider;
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{RetryPolicy, WithExportConfig, WithTonicConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SdkTracer, SdkTracerProvider, Span, SpanData, SpanExporter, SpanProcessor,
};
use tokio::runtime::Handle;

/// Spans that wait at most; a span is about a kibibyte.
const QUEUE: usize = 8_192;
/// Spans sent at once at most.
const BATCH: usize = 256;
/// From a span's end to its sending. A node that is killed takes the spans of about so long with it.
const DELAY: Duration = Duration::from_millis(200);
/// How long the collector may take for a batch.
const GIVE_UP: Duration = Duration::from_secs(2);

/// What became of spans.
#[derive(Debug, Default)]
pub struct Counts {
    /// Ended and taken to be sent.
    waiting: AtomicU64,
    sent: AtomicU64,
    lost: AtomicU64,
}

impl Counts {
    /// Spans that the collector has.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Spans that did not fit, or did not get there.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// The way to the collector. The last spans are on their way until [`Export::end`].
#[derive(Debug)]
pub struct Export {
    provider: SdkTracerProvider,
    counts: Arc<Counts>,
}

/// Why no spans are sent although an endpoint is set.
#[derive(Debug, thiserror::Error)]
pub enum NoExport {
    /// The protocol is another one.
    #[error("OTEL_EXPORTER_OTLP_PROTOCOL is {0}; this node speaks grpc alone: no traces are sent")]
    Protocol(String),
    /// The exporter can't be made of the variables.
    #[error("the OTEL_EXPORTER_OTLP_* variables are refused: {0}; no traces are sent")]
    Refused(#[from] opentelemetry_otlp::ExporterBuildError),
}

fn given(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

impl Export {
    /// Begins to export, in the name of a node; none where no endpoint is set, or where it is switched off. To be
    /// called within the runtime.
    ///
    /// # Errors
    /// [`NoExport`]; a node goes on without.
    pub fn start(node: &str) -> Result<Option<Export>, NoExport> {
        let has_endpoint = given("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").or(given("OTEL_EXPORTER_OTLP_ENDPOINT"));
        let is_off = given("OTEL_SDK_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true"))
            || given("OTEL_TRACES_EXPORTER").is_some_and(|text| text == "none");
        if has_endpoint.is_none() || is_off {
            return Ok(None);
        }
        let protocol = given("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL").or(given("OTEL_EXPORTER_OTLP_PROTOCOL"));
        if let Some(other) = protocol.filter(|text| text != "grpc") {
            return Err(NoExport::Protocol(other));
        }
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_tonic()
            .with_timeout(GIVE_UP)
            // A batch that failed would hold up those behind it, and they would be lost in its place.
            .with_retry_policy(RetryPolicy::disabled())
            .build()?;
        let counts = Arc::new(Counts::default());
        let limits = BatchConfigBuilder::default()
            .with_max_queue_size(QUEUE)
            .with_max_export_batch_size(BATCH)
            .with_scheduled_delay(DELAY);
        let sent = Counted { inner: exporter, counts: Arc::clone(&counts), runtime: Handle::current() };
        let batches = BatchSpanProcessor::builder(sent).with_batch_config(limits.build()).build();
        let processor = Bounded { inner: batches, counts: Arc::clone(&counts) };
        let provider =
            SdkTracerProvider::builder().with_resource(resource(node)).with_span_processor(processor).build();
        Ok(Some(Export { provider, counts }))
    }

    pub(super) fn tracer(&self) -> SdkTracer {
        self.provider.tracer(env!("CARGO_PKG_NAME"))
    }

    /// What became of spans so far.
    #[must_use]
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    /// Sends what waits, for so long at most. Blocks: not to be called on a thread of the runtime.
    pub fn end(self, within: Duration) {
        if let Err(error) = self.provider.shutdown_with_timeout(within) {
            let lost = self.counts.waiting.load(Ordering::Relaxed);
            tracing::info!(%error, spans = lost, "the last spans may not have reached the collector");
        }
    }
}

/// Who sends: what the variables say counts before what is known here.
fn resource(node: &str) -> Resource {
    let named = given("OTEL_SERVICE_NAME").is_some()
        || given("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|text| text.contains("service.name="));
    let identified = given("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|text| text.contains("service.instance.id="));
    let mut known = vec![KeyValue::new("service.version", env!("CARGO_PKG_VERSION"))];
    if !identified {
        known.push(KeyValue::new("service.instance.id", node.to_owned()));
    }
    let builder = Resource::builder().with_attributes(known);
    let builder = if named { builder } else { builder.with_service_name(env!("CARGO_PKG_NAME")) };
    builder.build()
}

/// Counts what its exporter sends and what it does not.
#[derive(Debug)]
struct Counted<E> {
    inner: E,
    counts: Arc<Counts>,
    runtime: Handle,
}

impl<E: SpanExporter> SpanExporter for Counted<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len() as u64;
        // The exporter's own timeout leaves out connecting, which takes minutes where packets vanish.
        let bounded = {
            let _within = self.runtime.enter();
            tokio::time::timeout(GIVE_UP, self.inner.export(batch))
        };
        let result = bounded.await.unwrap_or(Err(OTelSdkError::Timeout(GIVE_UP)));
        let count = if result.is_ok() { &self.counts.sent } else { &self.counts.lost };
        count.fetch_add(spans, Ordering::Relaxed);
        self.counts.waiting.fetch_sub(spans, Ordering::Relaxed);
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

/// Lets so many spans wait and counts those that do not fit, which its processor would lose without a number.
#[derive(Debug)]
struct Bounded<P> {
    inner: P,
    counts: Arc<Counts>,
}

impl<P: SpanProcessor> SpanProcessor for Bounded<P> {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.inner.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if !span.span_context.is_sampled() {
            return;
        }
        // Several threads may pass the bound together, by one span each: half the queue is left for them.
        if self.counts.waiting.load(Ordering::Relaxed) >= (QUEUE / 2) as u64 {
            self.counts.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.counts.waiting.fetch_add(1, Ordering::Relaxed);
        self.inner.on_end(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}
