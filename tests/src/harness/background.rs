//! Something that goes on beside a test, on a thread of its own: a test that blocks its thread does not hold it up.

use std::future::Future;
use std::thread::{self, JoinHandle};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A runtime on a thread. Dropping it ends all that runs there.
#[derive(Debug)]
pub(super) struct Background {
    handle: Handle,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Starts one.
    pub(super) fn start(name: &str) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel();
        let run = move || {
            let _ = runtime.block_on(stopped);
            // Dropped here: what still runs is dropped with it.
            drop(runtime);
        };
        let thread = thread::Builder::new().name(name.into()).spawn(run).expect("a thread");
        Self { handle, stop: Some(stop), thread: Some(thread) }
    }

    /// Has it run.
    pub(super) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.handle.spawn(future);
    }

    /// Makes a listener that belongs to it into one of its runtime's.
    pub(super) fn listener(&self, listener: std::net::TcpListener) -> tokio::net::TcpListener {
        listener.set_nonblocking(true).expect("a listener that does not block");
        let _runtime = self.handle.enter();
        tokio::net::TcpListener::from_std(listener).expect("a listener")
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
