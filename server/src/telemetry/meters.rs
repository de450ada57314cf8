//! The handles that the server counts with: registered once, so that counting is no more than an atomic addition.

use std::collections::BTreeMap;
use std::time::Duration;

use ::metrics::{Counter, Gauge, Histogram, Key, KeyName, Label, Level, Metadata, Recorder};
use tokkuri_core::Text;
use tokkuri_core::store::Request;
use tokkuri_core::task::Status;

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// Every metric, with what Prometheus shows as its help. Their meaning is told at length in [`telemetry`](super).
pub(super) const METRICS: &[(&str, Kind, &str)] = &[
    ("tokkuri_build_info", Kind::Gauge, "1: the version that runs."),
    ("tokkuri_tasks_created_total", Kind::Counter, "Tasks that were stored."),
    ("tokkuri_tasks_live", Kind::Gauge, "Live tasks whose run this node has, by the status that it has seen last."),
    ("tokkuri_tasks_ended_total", Kind::Counter, "Tasks that this node ended, by outcome."),
    ("tokkuri_tasks_expired_total", Kind::Counter, "Tasks removed because their time to live was over."),
    (
        "tokkuri_tasks_orphaned_total",
        Kind::Counter,
        "Tasks of lost runs that this node took over: failed or restarted.",
    ),
    ("tokkuri_quota_refusals_total", Kind::Counter, "Calls whose owner had as many live tasks as allowed."),
    ("tokkuri_runs_alive", Kind::Gauge, "Tools that run in this process now, as tasks or in their request."),
    ("tokkuri_runs_queued", Kind::Gauge, "Tasks of this node that wait for a place to run."),
    ("tokkuri_tasks_followed", Kind::Gauge, "Tasks that somebody follows on this node."),
    ("tokkuri_request_bytes_held", Kind::Gauge, "Bytes of request bodies in memory now."),
    ("tokkuri_streams_open", Kind::Gauge, "subscriptions/listen streams that are open."),
    ("tokkuri_store_requests_total", Kind::Counter, "What the store was asked, by kind of request."),
    ("tokkuri_store_request_duration_seconds", Kind::Histogram, "How long the store's answer took, where it took I/O."),
    ("tokkuri_store_unavailable_total", Kind::Counter, "Requests that the store could not carry out."),
    ("tokkuri_store_conflicts_total", Kind::Counter, "Commits refused because somebody else's came first."),
    ("tokkuri_lease_renewals_total", Kind::Counter, "Times the store granted this node its lease."),
    (
        "tokkuri_lease_losses_total",
        Kind::Counter,
        "Times this node lost its lease, stopped its runs and went on as another.",
    ),
    ("tokkuri_signals_sent_total", Kind::Counter, "Signals that other nodes have taken."),
    ("tokkuri_signals_lost_total", Kind::Counter, "Signals to other nodes that were given up."),
    ("tokkuri_signals_received_total", Kind::Counter, "Signals of other nodes that arrived here."),
    ("tokkuri_signals_late_total", Kind::Counter, "Signals of other nodes that told nothing new."),
    (
        "tokkuri_http_requests_total",
        Kind::Counter,
        "HTTP requests at the endpoint, by MCP method and class of HTTP status.",
    ),
];

/// What a tool is called that this process does not have: its task was created by one that had it.
const UNKNOWN_TOOL: &str = "(unknown)";

/// Where everything is counted.
#[derive(Debug)]
pub(crate) struct Meters {
    pub(super) created: ByTool<Counter>,
    pub(super) ended: ByTool<Ended>,
    pub(super) expired_live: Counter,
    pub(super) expired_ended: Counter,
    pub(super) orphans_failed: Counter,
    pub(super) orphans_restarted: Counter,
    /// Owners at their limit.
    pub(crate) quota_refusals: Counter,
    pub(crate) live_working: Gauge,
    pub(crate) live_input_required: Gauge,
    pub(crate) runs_alive: Gauge,
    pub(crate) runs_queued: Gauge,
    pub(crate) tasks_followed: Gauge,
    pub(crate) streams_open: Gauge,
    pub(crate) buffered: Gauge,
    store: [Asked; StoreRequest::ALL.len()],
    pub(super) conflicts: Counter,
    pub(super) lease_renewals: Counter,
    /// The node went on as another.
    pub(crate) lease_losses: Counter,
    pub(crate) signals: Signals,
    http: [[Counter; CLASSES.len()]; HttpMethod::ALL.len()],
}

/// Signals between nodes.
#[derive(Debug)]
pub(crate) struct Signals {
    /// Another node has taken it.
    pub(crate) sent: Counter,
    /// Given up: no room, no such peer, no answer in time.
    pub(crate) lost: Counter,
    /// One arrived here.
    pub(crate) received: Counter,
    /// One arrived here and told nothing new; it counts as received, too.
    pub(crate) late: Counter,
}

#[derive(Debug)]
pub(super) struct Ended {
    pub(super) completed: Counter,
    pub(super) failed: Counter,
    pub(super) cancelled: Counter,
}

/// One kind of request to the store.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) requests: Counter,
    pub(super) unavailable: Counter,
    pub(super) seconds: Histogram,
}

/// Something for every tool of the set, and for all others together.
#[derive(Debug)]
pub(super) struct ByTool<T> {
    tools: BTreeMap<Text, T>,
    unknown: T,
}

impl<T> ByTool<T> {
    fn new<'a>(tools: impl IntoIterator<Item = &'a str>, make: impl Fn(&str) -> T) -> Self {
        let tools = tools.into_iter().map(|tool| (Text::from(tool), make(tool))).collect();
        Self { tools, unknown: make(UNKNOWN_TOOL) }
    }

    pub(super) fn of(&self, tool: &Text) -> &T {
        self.tools.get(tool).unwrap_or(&self.unknown)
    }
}

/// What a store can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreRequest {
    Load,
    Insert,
    Commit,
    Count,
    Due,
    Remove,
    Orphans,
    TouchedSince,
    Page,
    Join,
    Renew,
    Resign,
    Nodes,
    Drain,
}

impl StoreRequest {
    pub(super) const ALL: [Self; 14] = [
        Self::Load,
        Self::Insert,
        Self::Commit,
        Self::Count,
        Self::Due,
        Self::Remove,
        Self::Orphans,
        Self::TouchedSince,
        Self::Page,
        Self::Join,
        Self::Renew,
        Self::Resign,
        Self::Nodes,
        Self::Drain,
    ];

    pub(crate) const fn of<P>(request: &Request<P>) -> Self {
        match request {
            Request::Load { .. } => Self::Load,
            Request::Insert { .. } => Self::Insert,
            Request::Commit { .. } => Self::Commit,
            Request::Count { .. } => Self::Count,
            Request::Due { .. } => Self::Due,
            Request::Remove { .. } => Self::Remove,
            Request::Orphans { .. } => Self::Orphans,
            Request::TouchedSince { .. } => Self::TouchedSince,
            Request::Page { .. } => Self::Page,
            Request::Join { .. } => Self::Join,
            Request::Renew { .. } => Self::Renew,
            Request::Resign { .. } => Self::Resign,
            Request::Nodes => Self::Nodes,
            Request::Drain { .. } => Self::Drain,
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Insert => "insert",
            Self::Commit => "commit",
            Self::Count => "count",
            Self::Due => "due",
            Self::Remove => "remove",
            Self::Orphans => "orphans",
            Self::TouchedSince => "touched_since",
            Self::Page => "page",
            Self::Join => "join",
            Self::Renew => "renew",
            Self::Resign => "resign",
            Self::Nodes => "nodes",
            Self::Drain => "drain",
        }
    }
}

/// The MCP method of an HTTP request, as far as it is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HttpMethod {
    ToolsCall,
    ToolsList,
    TasksGet,
    TasksUpdate,
    TasksCancel,
    Listen,
    Initialize,
    /// One of the rest, notifications and answers included.
    Other,
    /// No message was read: refused before that, or no POST.
    None,
}

impl HttpMethod {
    pub(super) const ALL: [Self; 9] = [
        Self::ToolsCall,
        Self::ToolsList,
        Self::TasksGet,
        Self::TasksUpdate,
        Self::TasksCancel,
        Self::Listen,
        Self::Initialize,
        Self::Other,
        Self::None,
    ];

    pub(crate) fn of(method: &str) -> Self {
        match method {
            "tools/call" => Self::ToolsCall,
            "tools/list" => Self::ToolsList,
            "tasks/get" => Self::TasksGet,
            "tasks/update" => Self::TasksUpdate,
            "tasks/cancel" => Self::TasksCancel,
            "subscriptions/listen" => Self::Listen,
            "initialize" => Self::Initialize,
            _ => Self::Other,
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Self::ToolsCall => "tools/call",
            Self::ToolsList => "tools/list",
            Self::TasksGet => "tasks/get",
            Self::TasksUpdate => "tasks/update",
            Self::TasksCancel => "tasks/cancel",
            Self::Listen => "subscriptions/listen",
            Self::Initialize => "initialize",
            Self::Other => "other",
            Self::None => "none",
        }
    }
}

/// Classes of HTTP statuses.
const CLASSES: [&str; 4] = ["2xx", "3xx", "4xx", "5xx"];

impl Meters {
    pub(super) fn new<'a>(recorder: &dyn Recorder, tools: impl IntoIterator<Item = &'a str>) -> Self {
        let register = Register { recorder };
        register.describe();
        register.gauge("tokkuri_build_info", &[("version", env!("CARGO_PKG_VERSION"))]).set(1.0);
        let tools: Vec<_> = tools.into_iter().collect();
        let ended = |tool: &str| {
            let ended = |outcome: Status| {
                register.counter("tokkuri_tasks_ended_total", &[("tool", tool), ("outcome", outcome.as_str())])
            };
            Ended {
                completed: ended(Status::Completed),
                failed: ended(Status::Failed),
                cancelled: ended(Status::Cancelled),
            }
        };
        let live = |status: Status| register.gauge("tokkuri_tasks_live", &[("status", status.as_str())]);
        Self {
            created: ByTool::new(tools.iter().copied(), |tool| {
                register.counter("tokkuri_tasks_created_total", &[("tool", tool)])
            }),
            ended: ByTool::new(tools, ended),
            expired_live: register.counter("tokkuri_tasks_expired_total", &[("was", "live")]),
            expired_ended: register.counter("tokkuri_tasks_expired_total", &[("was", "ended")]),
            orphans_failed: register.counter("tokkuri_tasks_orphaned_total", &[("became", "failed")]),
            orphans_restarted: register.counter("tokkuri_tasks_orphaned_total", &[("became", "restarted")]),
            quota_refusals: register.counter("tokkuri_quota_refusals_total", &[]),
            live_working: live(Status::Working),
            live_input_required: live(Status::InputRequired),
            runs_alive: register.gauge("tokkuri_runs_alive", &[]),
            runs_queued: register.gauge("tokkuri_runs_queued", &[]),
            tasks_followed: register.gauge("tokkuri_tasks_followed", &[]),
            streams_open: register.gauge("tokkuri_streams_open", &[]),
            buffered: register.gauge("tokkuri_request_bytes_held", &[]),
            store: StoreRequest::ALL.map(|request| {
                let labels = &[("request", request.label())];
                Asked {
                    requests: register.counter("tokkuri_store_requests_total", labels),
                    unavailable: register.counter("tokkuri_store_unavailable_total", labels),
                    seconds: register.histogram("tokkuri_store_request_duration_seconds", labels),
                }
            }),
            conflicts: register.counter("tokkuri_store_conflicts_total", &[]),
            lease_renewals: register.counter("tokkuri_lease_renewals_total", &[]),
            lease_losses: register.counter("tokkuri_lease_losses_total", &[]),
            signals: Signals {
                sent: register.counter("tokkuri_signals_sent_total", &[]),
                lost: register.counter("tokkuri_signals_lost_total", &[]),
                received: register.counter("tokkuri_signals_received_total", &[]),
                late: register.counter("tokkuri_signals_late_total", &[]),
            },
            http: HttpMethod::ALL.map(|method| {
                CLASSES.map(|status| {
                    register.counter("tokkuri_http_requests_total", &[("method", method.label()), ("status", status)])
                })
            }),
        }
    }

    pub(super) const fn asked(&self, request: StoreRequest) -> &Asked {
        &self.store[request as usize]
    }

    /// The store's answer took so long.
    pub(crate) fn store_took(&self, request: StoreRequest, time: Duration) {
        self.asked(request).seconds.record(time.as_secs_f64());
    }

    /// A request at the endpoint was answered.
    pub(crate) fn http(&self, method: HttpMethod, status: http::StatusCode) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(2).min(CLASSES.len() - 1);
        self.http[method as usize][class].increment(1);
    }
}

/// Makes handles.
struct Register<'a> {
    recorder: &'a dyn Recorder,
}

impl Register<'_> {
    const METADATA: Metadata<'static> = Metadata::new("tokkuri", Level::INFO, None);

    fn describe(&self) {
        for (name, kind, help) in METRICS {
            let name = KeyName::from_const_str(name);
            match kind {
                Kind::Counter => self.recorder.describe_counter(name, None, (*help).into()),
                Kind::Gauge => self.recorder.describe_gauge(name, None, (*help).into()),
                Kind::Histogram => self.recorder.describe_histogram(name, None, (*help).into()),
            }
        }
    }

    fn counter(&self, name: &'static str, labels: &[(&'static str, &str)]) -> Counter {
        self.recorder.register_counter(&key(name, labels), &Self::METADATA)
    }

    fn gauge(&self, name: &'static str, labels: &[(&'static str, &str)]) -> Gauge {
        self.recorder.register_gauge(&key(name, labels), &Self::METADATA)
    }

    fn histogram(&self, name: &'static str, labels: &[(&'static str, &str)]) -> Histogram {
        self.recorder.register_histogram(&key(name, labels), &Self::METADATA)
    }
}

fn key(name: &'static str, labels: &[(&'static str, &str)]) -> Key {
    let labels: Vec<_> = labels.iter().map(|(name, value)| Label::new(*name, (*value).to_owned())).collect();
    Key::from_parts(name, labels)
}
