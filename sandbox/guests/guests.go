// Package guests puts the programs of sandboxes, which scripts/build-guest makes, into the program that imports it, if it is built
// with the tag embedguest. It stands apart so that all else is compiled once, with the tag or without.
package guests
