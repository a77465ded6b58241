"""Consumer groups with clients that we did not write: joining, leaving, being killed, committing.

Members run in processes of their own (`worker`, the Java driver, kcat), so that one can be killed.
A test sees them as `Member`s of a `Crew`, which keeps what they tell.
"""
