package notify

import "time"

// SetTries sets for how long each notification is tried.
func (n *Notifier) SetTries(d time.Duration) { n.tries = d }
