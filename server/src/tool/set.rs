//! The tools of a server, by name and in order.

use std::collections::HashMap;
use std::sync::Arc;

use crate::tool::{BadSchema, Tool};

/// The tools that a server offers: listed in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct ToolSet {
    tools: Vec<Arc<Tool>>,
    by_name: HashMap<String, usize>,
}

/// Why a tool cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddToolError {
    /// There is a tool of this name.
    #[error("there are two tools called {0:?}")]
    Name(String),
    /// One of its schemas cannot be used.
    #[error(transparent)]
    Schema(#[from] BadSchema),
}

impl ToolSet {
    /// No tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool.
    ///
    /// # Errors
    /// If there is a tool of this name, or one of its schemas cannot be used.
    pub fn add(&mut self, tool: Tool) -> Result<(), AddToolError> {
        if self.by_name.contains_key(tool.name()) {
            return Err(AddToolError::Name(tool.name().to_owned()));
        }
        let tool = tool.compiled()?;
        self.by_name.insert(tool.name().to_owned(), self.tools.len());
        self.tools.push(Arc::new(tool));
        Ok(())
    }

    /// The tool of this name.
    pub fn find(&self, name: &str) -> Option<&Arc<Tool>> {
        self.by_name.get(name).map(|&at| &self.tools[at])
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.tools.iter()
    }
}
