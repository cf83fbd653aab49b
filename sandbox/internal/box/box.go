// Package box is the runner's side of a guest: a sandbox that is a socket to it.
package box
