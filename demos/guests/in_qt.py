"""perframe in a widget of Qt (PySide6). `python demos/guests/in_qt.py`."""

import sys

from painting import Painting
from PySide6.QtGui import QCloseEvent, QKeyEvent, QSurfaceFormat
from PySide6.QtOpenGLWidgets import QOpenGLWidget
from PySide6.QtWidgets import QApplication

import perframe as pf
from perframe.host import KeyEvent


class Widget(QOpenGLWidget):
    """A widget that shows the painting; Qt draws it into a framebuffer of its own."""

    def initializeGL(self) -> None:
        self.app = pf.attach(Painting())
        self.frameSwapped.connect(self.update)  # and again

    def paintGL(self) -> None:
        self.app.loop_once()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        self.app.post(KeyEvent(event.text(), True))

    def keyReleaseEvent(self, event: QKeyEvent) -> None:
        self.app.post(KeyEvent(event.text(), False))

    def closeEvent(self, event: QCloseEvent) -> None:
        self.makeCurrent()
        self.app.release()
        self.doneCurrent()


surface = QSurfaceFormat()
surface.setVersion(3, 3)
surface.setProfile(QSurfaceFormat.OpenGLContextProfile.CoreProfile)
QSurfaceFormat.setDefaultFormat(surface)  # before the application is made
application = QApplication(sys.argv)
widget = Widget()
widget.setWindowTitle("perframe in Qt: hold a key")
widget.resize(640, 360)
widget.show()
application.exec()
