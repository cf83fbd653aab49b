// Package embedded holds command sandboxd, in what was built with the tag embedguest after scripts/build-guest. In all
// else Program is empty, and the whole program runs itself again instead.
package embedded
