// Package gvisor runs each sandbox on a kernel of its own: gVisor, a program that answers its system calls. It needs the
// program runsc and Linux.
package gvisor
