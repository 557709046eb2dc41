// A room without sources of its own yet still is a target.
