package browser

// SetFlags adds flags to those that the browser starts with.
func SetFlags(c *Config, flags ...string) { c.flags = flags }

// SetRoom bounds downloads, in bytes.
func SetRoom(c *Config, room int64) { c.room = room }
