//! Volterra tensor-network ensembles on microcontrollers.
#![no_std]
