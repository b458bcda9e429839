//! Takes what the core counts through the `metrics` facade; gives it to a meter of OpenTelemetry.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;

use crate::metering;

/// Counts everything a second time, for the collector.
#[derive(Debug)]
pub(super) struct Figures(pub(super) Meter);

impl Recorder for Figures {
    // What a figure means is told by `observe`; the exporter's protocol has it for each point.
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let counter = self.0.u64_counter(key.name().to_owned()).build();
        let counted = AtomicU64::new(0);
        Counter::from_arc(Arc::new(Counted { counter, counted, labels: labels(key) }))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        let gauge = self.0.f64_gauge(key.name().to_owned()).build();
        let value = AtomicU64::new(0_f64.to_bits());
        Gauge::from_arc(Arc::new(Shown { gauge, value, labels: labels(key) }))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        let histogram = self.0.f64_histogram(key.name().to_owned());
        let histogram = match metering::bounds(key.name()) {
            Some(bounds) => histogram.with_boundaries(bounds.to_vec()),
            None => histogram,
        };
        let (histogram, labels) = (histogram.build(), labels(key));
        Histogram::from_arc(Arc::new(Measured { histogram, labels }))
    }
}

fn labels(key: &Key) -> Vec<KeyValue> {
    let labels = key.labels();
    labels.map(|it| KeyValue::new(it.key().to_owned(), it.value().to_owned())).collect()
}

struct Counted {
    counter: opentelemetry::metrics::Counter<u64>,
    counted: AtomicU64,
    labels: Vec<KeyValue>,
}

impl CounterFn for Counted {
    fn increment(&self, value: u64) {
        self.counted.fetch_add(value, Ordering::Relaxed);
        self.counter.add(value, &self.labels);
    }

    fn absolute(&self, value: u64) {
        let before = self.counted.fetch_max(value, Ordering::Relaxed);
        self.counter.add(value.saturating_sub(before), &self.labels);
    }
}

struct Shown {
    gauge: opentelemetry::metrics::Gauge<f64>,
    value: AtomicU64,
    labels: Vec<KeyValue>,
}

impl Shown {
    fn change(&self, to: impl Fn(f64) -> f64) {
        let changed = |bits| Some(to(f64::from_bits(bits)).to_bits());
        let order = Ordering::Relaxed;
        let before = self.value.fetch_update(order, order, changed);
        let before = f64::from_bits(before.unwrap_or_else(|bits| bits));
        self.gauge.record(to(before), &self.labels);
    }
}

impl GaugeFn for Shown {
    fn increment(&self, value: f64) {
        self.change(|before| before + value);
    }

    fn decrement(&self, value: f64) {
        self.change(|before| before - value);
    }

    fn set(&self, value: f64) {
        self.change(|_| value);
    }
}

struct Measured {
    histogram: opentelemetry::metrics::Histogram<f64>,
    labels: Vec<KeyValue>,
}

impl HistogramFn for Measured {
    fn record(&self, value: f64) {
        self.histogram.record(value, &self.labels);
    }
}
