//! What the ablation benchmark leaves out of the search, one at a time.

/// A source of starts, or a rule.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Source: end cores from subspaces on which the direct solution vanishes.
    Subspaces,
    /// The middle of quartics between such ends.
    Quartics,
    /// Source: few directions of many inputs.
    Directed,
    /// Further directions where the residual goes on.
    Growth,
    /// Source: long networks grown from rank one.
    Grown,
    /// Source: random networks.
    Random,
    /// Starts above the cap.
    Above,
    /// Directions of a bond are spared on the subspace where the others vanish.
    Projection,
    /// Descents see some of the rows.
    Sketch,
    /// Starts that agree end the search.
    Agreement,
}
