package ports

import "testing"

// ForTest returns n ports that are the test's until it ends, for processes that are told
// where to listen: nobody listens there yet, no other test is given them, and no outgoing
// connection takes one, as it may one that the kernel chose and that was closed again.
func ForTest(t testing.TB, n int) []int {
	t.Helper()
	block, err := Claim(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { block.Close() })
	ports := make([]int, n)
	for i := range ports {
		ports[i] = block.Base + i
	}
	return ports
}
