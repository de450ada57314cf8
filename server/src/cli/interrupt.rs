//! Ctrl-C as something to wait for, as often as it is pressed.

use tokio::sync::mpsc;

/// Hears Ctrl-C from its creation on, so that none is lost between two waits.
#[derive(Debug)]
pub(crate) struct Interrupts(mpsc::UnboundedReceiver<()>);

impl Interrupts {
    /// Takes Ctrl-C over from the system, which would end the process.
    pub(crate) fn listen() -> Self {
        let (heard, hear) = mpsc::unbounded_channel();
        tokio::spawn(async move { while tokio::signal::ctrl_c().await.is_ok() && heard.send(()).is_ok() {} });
        Self(hear)
    }

    /// The next one.
    pub(crate) async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            // Nothing will be heard any more, which is not an interrupt.
            std::future::pending().await
        }
    }

    /// Interrupts by hand, for tests.
    #[cfg(test)]
    pub(crate) fn scripted() -> (mpsc::UnboundedSender<()>, Self) {
        let (press, hear) = mpsc::unbounded_channel();
        (press, Self(hear))
    }
}
