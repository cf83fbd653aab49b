// Package gvisor runs sandboxes on a kernel of their own: gVisor's, a program that answers their system calls. It takes
// runsc, and nothing else; Linux only.
package gvisor
