package login

// Forget makes this process nobody.
func Forget() {
	process.Lock()
	defer process.Unlock()
	process.user, process.before, process.keytab = nil, nil, false
}
