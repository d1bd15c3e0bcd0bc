/** The hidden command that runs a host; its spec comes on stdin. Apart, because the command table imports it. */
export const HOST_COMMAND = 'session-host';
