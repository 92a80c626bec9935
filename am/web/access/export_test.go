package access

import "time"

// Forget makes a filter look its proxies up again.
func Forget(f *ProxyFilter) { f.resolved = time.Time{} }
