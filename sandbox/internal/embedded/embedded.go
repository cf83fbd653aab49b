// Package embedded holds the commands sandboxd and sandboxhelper, in what was built with the tag embedguest after
// scripts/build-guest. In all else both are empty, and the whole program runs itself again instead.
package embedded
