package gate

import (
	"cmp"
	"slices"
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
}

// compare puts the longest wait first, then the first arrival.
func (w *waiter) compare(other *waiter) int {
	return cmp.Or(w.ticket.Since.Compare(other.ticket.Since), w.number-other.number)
}

// queue has the waiting requests in their order, in each of two lines. New ones come to the end or near it.
type queue struct {
	running, fresh []*waiter
	arrived        int
	favoured       int // how many requests of running went since the last one of fresh
}

func (q *queue) len() int { return len(q.running) + len(q.fresh) }

func (q *queue) lineOf(w *waiter) *[]*waiter {
	if w.ticket.Turn > 0 {
		return &q.running
	}
	return &q.fresh
}

func (q *queue) push(w *waiter) {
	q.arrived++
	w.number = q.arrived
	l := q.lineOf(w)
	at, _ := slices.BinarySearchFunc(*l, w, (*waiter).compare)
	*l = slices.Insert(*l, at, w)
}

// remove takes out a waiter that gave up. It returns false when the waiter had left already.
func (q *queue) remove(w *waiter) bool {
	l := q.lineOf(w)
	at, found := slices.BinarySearchFunc(*l, w, (*waiter).compare)
	if found {
		*l = slices.Delete(*l, at, at+1)
	}
	return found
}

// pop takes the next waiter of a queue that is not empty. With evenly the longest wait goes first, new episode or not.
func (q *queue) pop(now time.Time, evenly bool) *waiter {
	if evenly && len(q.fresh) > 0 && len(q.running) > 0 && q.fresh[0].ticket.Since.Before(q.running[0].ticket.Since) {
		return first(&q.fresh)
	}
	late := len(q.fresh) > 0 && q.favoured >= share-1 && now.Sub(q.fresh[0].ticket.Since) > patience
	if len(q.running) > 0 && !late {
		q.favoured++
		return first(&q.running)
	}
	q.favoured = 0
	return first(&q.fresh)
}

func first(l *[]*waiter) *waiter {
	w := (*l)[0]
	(*l)[0] = nil // the list may live long
	*l = (*l)[1:]
	return w
}

// clear sends all waiters to another endpoint.
func (q *queue) clear() {
	for _, w := range slices.Concat(q.running, q.fresh) {
		close(w.admit)
	}
	q.running, q.fresh = nil, nil
}
