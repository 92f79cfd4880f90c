//! Identifies nonlinear dynamic systems from recorded inputs and outputs as Volterra tensor networks.
