package am

import "time"

// ShortenEnd, before Run, sets how long each thing may take that is done after the job's end.
func (m *Master) ShortenEnd(each time.Duration) {
	m.endLimits = endLimits{seal: each, directories: each, record: each, tell: time.Minute}
}
