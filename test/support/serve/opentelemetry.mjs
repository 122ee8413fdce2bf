// The file of docs/observability.md, which a test holds it to.
import { trace } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { BatchSpanProcessor, TracerProvider } from "@opentelemetry/sdk-trace";

const exporter = new OTLPTraceExporter(); // OTEL_EXPORTER_OTLP_ENDPOINT says where
const provider = new TracerProvider({ spanProcessors: [new BatchSpanProcessor({ exporter })] });
trace.setGlobalTracerProvider(provider);
process.once("beforeExit", () => provider.shutdown());
