package gate

import (
	"container/heap"
	"time"
)

// An episode in progress goes before a new one, which saves memory and keeps prefixes in the server's cache. But one request
// in share goes to a new episode that has waited longer than patience, so that new episodes never starve.
const (
	patience = time.Minute
	share    = 32
)

// waiter is one request in the queue.
type waiter struct {
	ticket Ticket
	admit  chan *Pass // receives one pass; closed without one when the request is to move to another endpoint
	number int        // order of arrival
	index  int        // in its line; -1 once it has left
}

// queue orders waiting requests: the longest wait first, in each of two lines.
type queue struct {
	running, fresh line
	arrived        int
	favoured       int // how many requests of running went since the last one of fresh
}

func (q *queue) len() int { return len(q.running) + len(q.fresh) }

func (q *queue) lineOf(w *waiter) *line {
	if w.ticket.Turn > 0 {
		return &q.running
	}
	return &q.fresh
}

func (q *queue) push(w *waiter) {
	q.arrived++
	w.number = q.arrived
	heap.Push(q.lineOf(w), w)
}

// remove takes out a waiter that gave up. It returns false when the waiter had left already.
func (q *queue) remove(w *waiter) bool {
	if w.index < 0 {
		return false
	}
	heap.Remove(q.lineOf(w), w.index)
	return true
}

// pop takes the next waiter of a queue that is not empty. With evenly the longest wait goes first, new episode or not.
func (q *queue) pop(now time.Time, evenly bool) *waiter {
	if evenly && len(q.fresh) > 0 && len(q.running) > 0 && q.fresh[0].ticket.Since.Before(q.running[0].ticket.Since) {
		return heap.Pop(&q.fresh).(*waiter)
	}
	late := len(q.fresh) > 0 && q.favoured >= share-1 && now.Sub(q.fresh[0].ticket.Since) > patience
	if len(q.running) > 0 && !late {
		q.favoured++
		return heap.Pop(&q.running).(*waiter)
	}
	q.favoured = 0
	return heap.Pop(&q.fresh).(*waiter)
}

// clear sends all waiters to another endpoint.
func (q *queue) clear() {
	for _, l := range []*line{&q.running, &q.fresh} {
		for _, w := range *l {
			w.index = -1
			close(w.admit)
		}
		*l = nil
	}
}

// line is a heap by time of waiting, then by arrival.
type line []*waiter

func (l line) Len() int { return len(l) }

func (l line) Less(i, j int) bool {
	a, b := l[i], l[j]
	if !a.ticket.Since.Equal(b.ticket.Since) {
		return a.ticket.Since.Before(b.ticket.Since)
	}
	return a.number < b.number
}

func (l line) Swap(i, j int) {
	l[i], l[j] = l[j], l[i]
	l[i].index, l[j].index = i, j
}

func (l *line) Push(x any) {
	w := x.(*waiter)
	w.index = len(*l)
	*l = append(*l, w)
}

func (l *line) Pop() any {
	last := len(*l) - 1
	w := (*l)[last]
	(*l)[last] = nil
	*l = (*l)[:last]
	w.index = -1
	return w
}
