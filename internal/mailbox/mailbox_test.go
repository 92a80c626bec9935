package mailbox_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"holdfast/internal/mailbox"
)

func TestTakeReturnsAllInOrder(t *testing.T) {
	m := mailbox.New[int]()
	if got := m.Take(); len(got) != 0 {
		t.Errorf("a new mailbox has %v", got)
	}
	m.Put(1)
	m.Put(2)
	<-m.Ready()
	m.Put(3)
	if got := m.Take(); !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("taken are %v", got)
	}
	<-m.Ready() // of 3, which has been taken
	if got := m.Take(); len(got) != 0 {
		t.Errorf("taken twice are %v", got)
	}
	select {
	case <-m.Ready():
		t.Error("an empty mailbox is ready")
	default:
	}
}

func TestNothingThatIsPutIsMissed(t *testing.T) {
	const writers, each = 8, 1000
	m := mailbox.New[[2]int]()
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				m.Put([2]int{w, i})
			}
		})
	}
	var next [writers]int
	for n := 0; n < writers*each; {
		<-m.Ready()
		for _, e := range m.Take() {
			if w, i := e[0], e[1]; i != next[w] {
				t.Fatalf("after %d of writer %d comes %d", next[w]-1, w, i)
			}
			next[e[0]]++
			n++
		}
	}
	wg.Wait()
}

func TestChanDeliversMoreThanItHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 10000
		m, done := mailbox.New[int](), make(chan struct{})
		for i := range n {
			m.Put(i) // nobody reads yet
		}
		c := m.Chan(done)
		for i := range n {
			if got := <-c; got != i {
				t.Fatalf("%d comes in place of %d", got, i)
			}
		}
		m.Put(n)
		if got := <-c; got != n {
			t.Fatalf("%d comes in place of %d", got, n)
		}
		close(done)
		if e, open := <-c; open {
			t.Errorf("%d comes after the end", e)
		}
		m.Put(n + 1) // does not wait, and goes nowhere
	})
}

func TestChanEndsWhileNobodyReceives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, done := mailbox.New[int](), make(chan struct{})
		for i := range 10000 {
			m.Put(i)
		}
		c := m.Chan(done)
		synctest.Wait() // the channel is full
		close(done)
		synctest.Wait()
		n := 0
		for range c {
			n++
		}
		if n == 0 || n == 10000 {
			t.Errorf("%d elements were delivered", n)
		}
	})
}
